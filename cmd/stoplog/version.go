package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

type versionCommand struct {
	JSON bool `help:"Give the result as JSON."`
}

func (*versionCommand) Help() string {
	return `The version is that of the module the program was built from, and "(devel)" for a build from a working tree. Where the build knows it, the commit follows, and "modified" if the tree had changes of its own.

Examples:

    stoplog version
    stoplog version --json | jq -r .revision

Exit codes: 0.`
}

// build is what a program knows of how it was built.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"` // of the revision
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (c *versionCommand) Run(w *world) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	b := buildOf(info)
	if c.JSON {
		return json.NewEncoder(w.stdout).Encode(b)
	}
	_, err := fmt.Fprintln(w.stdout, b)
	return err
}

func buildOf(info *debug.BuildInfo) build {
	b := build{
		Version:  info.Main.Version,
		Go:       info.GoVersion,
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String gives one line: stoplog VERSION (REVISION, modified) GO PLATFORM.
func (b build) String() string {
	words := []string{"stoplog", b.Version}
	if b.Revision != "" {
		commit := b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			commit += ", modified"
		}
		words = append(words, "("+commit+")")
	}
	return strings.Join(append(words, b.Go, b.Platform), " ")
}
