package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStore(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	const (
		form     = `; write sqlite:FILE, such as sqlite:stoplog.db`
		postgres = `a store in Postgres is not in this version: the journal is an SQLite file on this machine`
		address  = `store is a file of this machine, not an address`
		memory   = `a store in memory is none: what happened must outlive the process`
	)
	for store, want := range map[string]struct{ file, err string }{
		"sqlite:stoplog.db":            {file: filepath.Join(dir, "stoplog.db")},
		"sqlite:a b/größe.db":          {file: filepath.Join(dir, "a b", "größe.db")},
		"sqlite:../x.db":               {file: filepath.Join(filepath.Dir(dir), "x.db")},
		"sqlite:/var/lib/stoplog.db":   {file: "/var/lib/stoplog.db"},
		"sqlite:///var/lib/stoplog.db": {file: "/var/lib/stoplog.db"},
		"sqlite://stoplog.db":          {err: address},
		"sqlite:":                      {err: "store names no file"},
		"sqlite: ":                     {err: "store names no file"},
		"sqlite::memory:":              {err: memory},
		"sqlite:./:memory:":            {err: memory},
		"sqlite:folder":                {err: "store is a folder"},
		"sqlite:.":                     {err: "store is a folder"},
		"postgres://u:p@db/stoplog":    {err: postgres},
		"postgresql://db/stoplog":      {err: postgres},
		"stoplog.db":                   {err: "store must be sqlite:FILE"},
		"SQLite:stoplog.db":            {err: "store must be sqlite:FILE"},
		"host=db password=secret":      {err: "store must be sqlite:FILE"},
	} {
		c, err := Parse(filepath.Join(dir, "f"), []byte("version: 1\nstore: \""+store+"\"\n"))
		switch {
		case want.err != "":
			if want := filepath.Join(dir, "f") + ":2:8: " + want.err + form; err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", store, err, want)
			}
		case err != nil:
			t.Errorf("%s: %v", store, err)
		case c.Store != want.file:
			t.Errorf("%s: store is %q, want %q", store, c.Store, want.file)
		}
	}
}
