package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// mostFiles is how many files one pattern may stand for: each is a rule of
	// the kernel's.
	mostFiles = 4096
	// mostEntries is how many directory entries are looked at for one pattern.
	mostEntries = 200_000
)

// pattern is a pattern of a scope, cut into segments.
type pattern struct {
	text     string
	segments []string
	literal  int // how many segments come before the first wildcard
}

// parsePattern reads a pattern that is relative to a root.
func parsePattern(text string) (pattern, error) {
	p := pattern{text: text}
	switch {
	case text == "":
		return p, errors.New("a pattern is empty")
	case strings.ContainsRune(text, 0):
		return p, fmt.Errorf("pattern %q has a NUL in it", text)
	case path.IsAbs(text):
		return p, fmt.Errorf("pattern %q is absolute: write it relative to the root", text)
	}
	for segment := range strings.SplitSeq(text, "/") {
		switch segment {
		case "", ".":
			continue
		case "..":
			return p, fmt.Errorf("pattern %q leads upwards", text)
		}
		if _, err := path.Match(segment, ""); err != nil {
			return p, fmt.Errorf("pattern %q: %w", text, err)
		}
		p.segments = append(p.segments, segment)
	}
	p.literal = slices.IndexFunc(p.segments, func(s string) bool { return strings.ContainsAny(s, `*?[\`) })
	if p.literal < 0 {
		p.literal = len(p.segments)
	}
	return p, nil
}

// plain reports whether the pattern has no wildcard.
func (p pattern) plain() bool { return p.literal == len(p.segments) }

// whole reports whether the pattern is a directory with all that is in it.
func (p pattern) whole() bool {
	return p.literal == len(p.segments)-1 && p.segments[p.literal] == "**"
}

// front is the path in front of the first wildcard.
func (p pattern) front() string { return filepath.Join(p.segments[:p.literal]...) }

// files yields the files under root that match now, relative to it and sorted.
// Links to directories are not followed.
func (p pattern) files(root string) ([]string, error) {
	var found []string
	seen := 0
	err := filepath.WalkDir(filepath.Join(root, p.front()), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil // what can not be read can not be granted
			}
			return err
		}
		if seen++; seen > mostEntries {
			return fmt.Errorf("pattern %q: there are more than %d entries to look at: name a directory", p.text, mostEntries)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil || d.IsDir() || !match(p.segments, strings.Split(rel, "/")) {
			return err
		}
		if found = append(found, rel); len(found) > mostFiles {
			return fmt.Errorf("pattern %q stands for more than %d files: name a directory", p.text, mostFiles)
		}
		return nil
	})
	return found, err
}

// match reports whether a path is one that a pattern stands for. Where a `**` took
// too little, the last one takes one segment more: an earlier one has nothing to
// gain from it, so the work is at most the product of the two lengths.
func match(pattern, name []string) bool {
	p, n := 0, 0
	star, taken := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			star, taken = p, n
			p++
		case p < len(pattern) && matchSegment(pattern[p], name[n]):
			p, n = p+1, n+1
		case star >= 0:
			taken++
			p, n = star+1, taken
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}

func matchSegment(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// inside reports whether a path is dir or in it. Both are clean.
func inside(dir, name string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}
