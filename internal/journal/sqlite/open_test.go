package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

// open opens a store that the test closes.
func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// raw opens the file as any program could.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func execSQL(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state", "stop log?.db#%20")
	s := open(t, path)
	if s.Path() != path {
		t.Errorf("path %s, want %s", s.Path(), path)
	}
	seen := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		seen++
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %o", name, mode)
		}
		return nil
	})
	if err != nil || seen < 4 { // the folder, the file, its key, the write-ahead log
		t.Errorf("%d entries, %v", seen, err)
	}
}

func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	s := open(t, path)
	got := map[string]string{}
	update(t, s, func(ctx context.Context, tx journal.Tx) error {
		for _, name := range []string{"page_size", "journal_mode", "synchronous", "busy_timeout", "secure_delete", "application_id"} {
			var v string
			if err := sqlite.SQL(tx).QueryRowContext(ctx, "PRAGMA "+name).Scan(&v); err != nil {
				return err
			}
			got[name] = v
		}
		return nil
	})
	for name, want := range map[string]string{
		"page_size": "512", "journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000", "secure_delete": "1", "application_id": "1937010796",
	} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, path string) // what was done to a store in good order
		want  string                          // part of the refusal
	}{
		{"written by a newer version", func(t *testing.T, path string) {
			execSQL(t, raw(t, path), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
		}, "was written by a newer stoplog (schema 99; this one knows "},
		{"another program's database", func(t *testing.T, path string) {
			execSQL(t, raw(t, path), `PRAGMA application_id = 7`)
		}, "another program's database"},
		{"not a database", func(t *testing.T, path string) {
			write(t, path, strings.Repeat("not a database. ", 100))
		}, "file is not a database"},
		{"the key is gone", func(t *testing.T, path string) {
			if err := os.Remove(path + ".key"); err != nil {
				t.Fatal(err)
			}
		}, "put it back"},
		{"the key is cut short", func(t *testing.T, path string) {
			if err := os.Truncate(path+".key", 20); err != nil {
				t.Fatal(err)
			}
		}, "put it back"},
		{"the key is another's", func(t *testing.T, path string) {
			write(t, path+".key", strings.Repeat("ab", 32)+"\n")
		}, "another store's"},
		{"others may read the key", func(t *testing.T, path string) { chmod(t, path+".key", 0o640) }, "chmod 600"},
		{"others may read the store", func(t *testing.T, path string) { chmod(t, path, 0o604) }, "chmod 600"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "stoplog.db")
			if err := open(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, path)
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("refused with %q, want the path and %q", err, c.want)
			}
			var newer *journal.NewerError
			if errors.As(err, &newer) != strings.Contains(c.name, "newer") {
				t.Errorf("refused with %v", err)
			}
		})
	}
}

// A process that died while it made the store leaves something that the next one
// can open.
func TestHalfMade(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, path string){
		"an empty key":               func(t *testing.T, path string) { write(t, path+".key", "") },
		"half a key":                 func(t *testing.T, path string) { write(t, path+".key", "abcd") },
		"a key and an empty file":    func(t *testing.T, path string) { write(t, path+".key", ""); write(t, path, "") },
		"a whole key and no store":   func(t *testing.T, path string) { write(t, path+".key", strings.Repeat("ab", 32)+"\n") },
		"a schema without its proof": func(t *testing.T, path string) { open(t, path); execSQL(t, raw(t, path), `DELETE FROM store`) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "stoplog.db")
			make(t, path)
			key := open(t, path).Key()
			if again := open(t, path).Key(); again != key || key == (journal.Key{}) {
				t.Errorf("the key is %x, and then %x", key, again)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
