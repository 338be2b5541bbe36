package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ReadFile reads a file of keys. It refuses one that others than its owner may
// read or write.
func ReadFile(name string) (*Ring, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the seal key %s is not there: make it with `stoplog seal-key --to %s`", name, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the seal key: %w", err)
	}
	if mode := info.Mode().Perm(); info.Mode().IsRegular() && mode&0o077 != 0 {
		return nil, fmt.Errorf("others than its owner may read the seal key %s (mode %04o): chmod 600 it", name, mode)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the seal key: %w", err)
	}
	r, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("seal key %s: %w", name, err)
	}
	return r, nil
}

// AddKey adds a new key to a file, which is made with mode 0600 if it is not
// there, and returns the ring with it. The file is replaced as a whole: a process
// that dies in between leaves the keys that were there.
func AddKey(name string) (*Ring, error) {
	fail := func(err error) (*Ring, error) { return nil, fmt.Errorf("add a key to %s: %w", name, err) }
	before, err := os.ReadFile(name)
	if err == nil {
		if _, err := ReadFile(name); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	if n := len(before); n > 0 && before[n-1] != '\n' {
		before = append(before, '\n')
	}
	after := append(before, NewKey()...)
	ring, err := Parse(after)
	if err != nil {
		return fail(err)
	}
	if err := replace(name, after); err != nil {
		return fail(err)
	}
	return ring, nil
}

// replace puts a file with mode 0600 in the place of another.
func replace(name string, content []byte) (err error) {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, ".stoplog-key-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), name); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
