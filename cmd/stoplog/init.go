package main

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
)

type initCommand struct {
	File string `arg:"" optional:"" default:"stoplog.yaml" help:"The file to write."`
	JSON bool   `help:"Give the file's name as JSON."`
}

func (*initCommand) Help() string {
	return `Writes a stoplog.yaml that says what is built in, with comments: with it or without it, the same holds. What you change in it, changes.

A file that is there is never written over.

Examples:

    stoplog init
    stoplog init deploy/stoplog.yaml

Exit codes: 0 written, 1 it could not be (the file is there), 2 usage.`
}

// builtinFile is the built-in configuration as a file, with comments. A test
// holds it to what is built in.
//
//go:embed init.yaml
var builtinFile []byte

func (c *initCommand) Run(w *world) error {
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return failf(exitError, "%s is there: it was not written over", c.File).hint("see `stoplog check-config --config %s`, or name another file", c.File)
	}
	if err != nil {
		return failf(exitError, "%w", err)
	}
	_, err = f.Write(builtinFile)
	if err = errors.Join(err, f.Close()); err != nil {
		return failf(exitError, "write %s: %w", c.File, errors.Join(err, os.Remove(c.File)))
	}
	if c.JSON {
		return newEncoder(w.stdout).Encode(map[string]string{"file": c.File})
	}
	return tell(w, "%s", c.File)
}
