package prompt

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Ref names a version of a prompt: NAME.md@vN.
type Ref struct {
	Name    string // a path with slashes, without .md: prompts/dry-run-gate
	Version int    // from 1
}

// String gives the form in which refs are written: NAME.md@vN.
func (r Ref) String() string { return r.Name + ".md@v" + strconv.Itoa(r.Version) }

// File is the path of the prompt's file: NAME@vN.md.
func (r Ref) File() string { return r.Name + "@v" + strconv.Itoa(r.Version) + ".md" }

// Corpus is the path of the folder with the prompt's cases: NAME@vN.corpus.
func (r Ref) Corpus() string { return r.Name + "@v" + strconv.Itoa(r.Version) + ".corpus" }

// ParseRef reads NAME.md@vN, or NAME@vN.md. A ref without a version has Version
// 0 and an error that is [ErrUnversioned]; a name that is no clean relative path
// is an error too.
func ParseRef(s string) (Ref, error) {
	name, version, versioned := strings.Cut(s, "@v")
	if before, ok := strings.CutSuffix(name, ".md"); ok {
		name = before
	} else if versioned {
		before, ok := strings.CutSuffix(version, ".md")
		if !ok {
			return Ref{}, fmt.Errorf("%q is no prompt; write NAME.md@vN", s)
		}
		version = before
	}
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "@\\") || path.Base(name)[0] == '.' {
		return Ref{}, fmt.Errorf("%q is no prompt: want a path below a prompt root, as in prompts/review.md@v1", s)
	}
	if !versioned {
		return Ref{Name: name}, fmt.Errorf("prompt %q %w; write NAME.md@vN", s, ErrUnversioned)
	}
	n, err := strconv.Atoi(version)
	if err != nil || n < 1 || strconv.Itoa(n) != version {
		return Ref{}, fmt.Errorf("%q is no version of a prompt; write NAME.md@vN, with N from 1", "v"+version)
	}
	return Ref{name, n}, nil
}
