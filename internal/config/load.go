package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stoplog/stoplog/internal/diag"
)

// Find gives the file to read: the one that was named, else ./stoplog.yaml, else
// stoplog/stoplog.yaml in $XDG_CONFIG_HOME (or ~/.config), whichever is there
// first; empty if there is none. A file that is there and cannot be read is the
// file: an error of [Load], not a reason to look on.
func Find(name string, getenv func(string) string) string {
	if name != "" {
		return name
	}
	candidates := []string{"stoplog.yaml"}
	// The XDG specification: a relative path is to be ignored.
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		candidates = append(candidates, filepath.Join(dir, "stoplog", "stoplog.yaml"))
	} else if home := getenv("HOME"); filepath.IsAbs(home) {
		candidates = append(candidates, filepath.Join(home, ".config", "stoplog", "stoplog.yaml"))
	}
	for _, file := range candidates {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return file
		}
	}
	return ""
}

// Load reads the file, or gives [Builtin] if file is empty. What is wrong in the
// file is a [diag.List]; if the file cannot be read at all, the error is that of
// the operating system.
func Load(file string) (*Config, error) {
	if file == "" {
		return Builtin(), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(file, data)
}

// Parse reads data as the content of file: the name stands in diagnostics, and
// relative paths are relative to its folder. Its error is a [diag.List].
func Parse(file string, data []byte) (*Config, error) {
	r := newReader(file)
	d := decoder{reader: r}
	doc := d.document(r.Read(data))
	c := resolve(r, doc)
	r.List.Sort()
	if err := r.List.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// asList gives the diagnostics that an error is, if it is that.
func asList(err error) (list diag.List, ok bool) {
	ok = errors.As(err, &list)
	return list, ok
}
