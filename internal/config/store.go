package config

import (
	"os"
	"path/filepath"
	"strings"
)

// store gives the file of the journal. What stands there instead may hold the
// password of a database, so that neither the message nor the line shows it.
func (s *resolver) store() string {
	const form = "write sqlite:FILE, such as sqlite:stoplog.db"
	kind, file, _ := strings.Cut(s.doc.store.value, ":")
	message, path := "store must be sqlite:FILE", s.path(file)
	info, err := os.Stat(path)
	switch {
	case kind == "postgres" || kind == "postgresql":
		message = "a store in Postgres is not in this version: the journal is an SQLite file on this machine"
	case kind != "sqlite":
	case strings.TrimSpace(file) == "":
		message = "store names no file"
	case filepath.Base(path) == ":memory:":
		message = "a store in memory is none: what happened must outlive the process"
	case strings.HasPrefix(file, "//") && !strings.HasPrefix(file, "///"):
		message = "store is a file of this machine, not an address"
	case err == nil && info.IsDir():
		message = "store is a folder"
	default:
		return path
	}
	refused := s.Diagnostic(s.doc.store.span, form, "%s", message)
	refused.Source = ""
	s.List = append(s.List, refused)
	return ""
}
