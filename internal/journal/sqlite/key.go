package sqlite

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stoplog/stoplog/internal/journal"
)

// keyFile is the file with the store's own key, 64 hex digits and a newline. It
// is also the lock of those who open the store: SQLite's own locks begin only
// with a database, and closing a second descriptor of the database file would
// drop them.
type keyFile struct{ *os.File }

func keyPath(store string) string { return store + ".key" }

// lockKey opens the key file of a store, makes an empty one if there is none, and
// waits until it is nobody else's. Close gives it up.
func lockKey(store string) (keyFile, error) {
	path := keyPath(store)
	if err := createPrivate(path); err != nil {
		return keyFile{}, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return keyFile{}, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return keyFile{}, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return keyFile{f}, nil
}

// key returns the key in the file. For a fresh store it makes one if there is
// none; what a process left there that died half-way is no key.
func (f keyFile) key(fresh bool) (k journal.Key, err error) {
	text, err := io.ReadAll(f)
	if err != nil {
		return k, err
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err == nil && len(b) == len(k) {
		return journal.Key(b), nil
	}
	if !fresh {
		return k, fmt.Errorf("the store's own key is not in %s: without it nothing in the store can be verified; put it back", f.Name())
	}
	if _, err := rand.Read(k[:]); err != nil {
		return k, err
	}
	if err := f.Truncate(0); err != nil {
		return k, err
	}
	if _, err := f.WriteAt([]byte(hex.EncodeToString(k[:])+"\n"), 0); err != nil {
		return k, err
	}
	return k, errors.Join(f.Sync(), syncDir(filepath.Dir(f.Name())))
}

// createPrivate makes an empty file that only its owner may read, if there is no
// file; it refuses one that others may read or write.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("others than its owner may read %s (mode %04o): chmod 600 it", path, mode)
	}
	return nil
}

// syncDir makes the names of new files in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
