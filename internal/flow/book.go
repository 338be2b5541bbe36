package flow

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/prompt"
	"github.com/stoplog/stoplog/playbook"
)

const (
	// maxFile is the size of the largest playbook that is read, in bytes.
	maxFile = 4 << 20
	// maxFiles is how many files a run reads of playbooks and prompts.
	maxFiles = 256
	// maxDepth is how many playbooks may call each other down.
	maxDepth = 8
)

// ReadBook reads a playbook, all that it calls, and their prompts. The error of a
// file that does not read is a diag.List.
func ReadBook(tree fs.FS, file string) (steps.Book, error) {
	r := &bookReader{tree: tree}
	pb, err := r.playbook(file, 0)
	if err != nil {
		return steps.Book{}, err
	}
	return steps.Book{Name: pb.Name.Value, File: file, Files: r.files}, nil
}

type bookReader struct {
	tree  fs.FS
	files []steps.File
}

// read reads a file once; false if it was read before.
func (r *bookReader) read(file string, most int64) (data []byte, first bool, err error) {
	if i := slices.IndexFunc(r.files, func(f steps.File) bool { return f.Name == file }); i >= 0 {
		return []byte(r.files[i].Text), false, nil
	}
	if len(r.files) == maxFiles {
		return nil, false, fmt.Errorf("read %s: a run reads at most %d files", file, maxFiles)
	}
	if data, err = prompt.Read(r.tree, file, most); err != nil {
		return nil, false, err
	}
	r.files = append(r.files, steps.File{Name: file, Text: string(data)})
	return data, true, nil
}

func (r *bookReader) playbook(file string, depth int) (*playbook.Playbook, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("read %s: playbooks call each other more than %d deep", file, maxDepth)
	}
	data, first, err := r.read(file, maxFile)
	if err != nil {
		return nil, err
	}
	pb, err := playbook.Parse(file, data)
	if err != nil || !first {
		return pb, err
	}
	for _, step := range pb.Steps {
		for _, ask := range asks(step) {
			if err := r.prompt(pb, ask); err != nil {
				return nil, err
			}
		}
		if call, ok := step.Work.(*playbook.Call); ok {
			if _, err := r.playbook(called(file, call), depth+1); err != nil {
				return nil, fmt.Errorf("step %s: %w", step.ID.Value, err)
			}
		}
	}
	return pb, nil
}

// called is the file of the playbook that a step calls.
func called(file string, call *playbook.Call) string {
	return path.Join(path.Dir(file), call.File.Value)
}

// asks are the questions to models that a step has.
func asks(step *playbook.Step) (all []*playbook.Ask) {
	switch work := step.Work.(type) {
	case *playbook.Claude:
		all = append(all, &work.Ask)
	case *playbook.Agent:
		all = append(all, &work.Ask)
	}
	if step.Observer != nil {
		all = append(all, &step.Observer.Ask)
	}
	return all
}

func (r *bookReader) prompt(pb *playbook.Playbook, ask *playbook.Ask) error {
	ref, err := prompt.ParseRef(ask.PromptRef.Value)
	if err != nil {
		return fmt.Errorf("%s: %w", ask.PromptRef.Span.Pos, err)
	}
	file, _, err := prompt.Find(r.tree, roots(pb), ref)
	if err != nil {
		return fmt.Errorf("%s: %w", ask.PromptRef.Span.Pos, err)
	}
	data, _, err := r.read(file, prompt.MaxBytes)
	if err != nil {
		return fmt.Errorf("%s: %w", ask.PromptRef.Span.Pos, err)
	}
	_, err = prompt.Parse(file, data)
	return err
}

// roots are the folders in which a playbook's prompts are looked for.
func roots(pb *playbook.Playbook) []string {
	if !pb.PromptRoots.Written() {
		return prompt.Roots
	}
	var all []string
	for _, root := range pb.PromptRoots.Value {
		all = append(all, root.Value)
	}
	return all
}

// bookDigest stands for all that a book says: SHA-256 of its JSON, in hexadecimal.
func bookDigest(b steps.Book) (string, error) {
	form, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(form)), nil
}

// shelf is a book's files as a tree.
type shelf []steps.File

var _ fs.FS = shelf(nil)

// Open implements [fs.FS].
func (s shelf) Open(name string) (fs.File, error) {
	for _, f := range s {
		if f.Name == name {
			return &shelved{bytes.NewReader([]byte(f.Text)), f}, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// shelved is an open file of a shelf.
type shelved struct {
	*bytes.Reader
	file steps.File
}

func (f *shelved) Stat() (fs.FileInfo, error) { return about{f.file}, nil }
func (*shelved) Close() error                 { return nil }

// about is what there is to say of a file on a shelf.
type about struct{ file steps.File }

func (a about) Name() string     { return path.Base(a.file.Name) }
func (a about) Size() int64      { return int64(len(a.file.Text)) }
func (about) Mode() fs.FileMode  { return 0o444 }
func (about) ModTime() time.Time { return time.Time{} }
func (about) IsDir() bool        { return false }
func (about) Sys() any           { return nil }

// script is a book that was read: what its run does.
type script struct {
	book    steps.Book
	pb      *playbook.Playbook
	prompts map[*playbook.Ask]*prompt.Prompt
}

var errNoPrompt = errors.New("its prompt is not in the book")

// open reads a book that is written down with a run.
func open(book steps.Book) (*script, error) {
	s := &script{book: book, prompts: map[*playbook.Ask]*prompt.Prompt{}}
	tree := shelf(book.Files)
	data, err := fs.ReadFile(tree, book.File)
	if err != nil {
		return nil, err
	}
	if s.pb, err = playbook.Parse(book.File, data); err != nil {
		return nil, err
	}
	for _, step := range s.pb.Steps {
		for _, ask := range asks(step) {
			ref, err := prompt.ParseRef(ask.PromptRef.Value)
			if err != nil {
				return nil, err
			}
			if s.prompts[ask], err = prompt.Load(tree, roots(s.pb), ref); err != nil {
				return nil, fmt.Errorf("step %s: %w: %w", step.ID.Value, errNoPrompt, err)
			}
		}
	}
	return s, nil
}
