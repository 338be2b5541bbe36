package prompt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Roots are the folders that are searched where a playbook names none.
var Roots = []string{"prompts", "library/prompts"}

// Find gives the path of a ref's file, and that of its corpus, in a tree: below
// one of the roots, whether the ref begins with the root's name or not. The error
// of a prompt that is in no root is [fs.ErrNotExist]; one that is in two is an
// error too: which of them was reviewed nobody could tell.
func Find(tree fs.FS, roots []string, ref Ref) (file, corpus string, err error) {
	var found []Ref
	for _, root := range roots {
		at := ref
		if !strings.HasPrefix(ref.Name, root+"/") {
			at.Name = path.Join(root, ref.Name)
		}
		info, err := fs.Stat(tree, at.File())
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", "", fmt.Errorf("find prompt %s: %w", ref, err)
		case !info.Mode().IsRegular():
			return "", "", fmt.Errorf("find prompt %s: %s is no file", ref, at.File())
		default:
			found = append(found, at)
		}
	}
	switch len(found) {
	case 0:
		return "", "", fmt.Errorf("no %s in %s: %w", ref.File(), strings.Join(roots, ", "), fs.ErrNotExist)
	case 1:
		return found[0].File(), found[0].Corpus(), nil
	}
	return "", "", fmt.Errorf("prompt %s is in two places: %s and %s", ref, found[0].File(), found[1].File())
}

// Load finds and reads the prompt of a ref. Its error is that of [Find], a
// [diag.List] of what is wrong with the file, or the file system's.
func Load(tree fs.FS, roots []string, ref Ref) (*Prompt, error) {
	file, _, err := Find(tree, roots, ref)
	if err != nil {
		return nil, err
	}
	data, err := Read(tree, file, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("read prompt %s: %w", ref, err)
	}
	return Parse(file, data)
}

// Read reads a file of at most most bytes, and one byte more of a larger one, so
// that its reader sees that it is too large.
func Read(tree fs.FS, file string, most int64) ([]byte, error) {
	f, err := tree.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}
