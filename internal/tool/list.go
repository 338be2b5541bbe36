package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"
)

// maxEntries is how many entries of a directory are listed.
const maxEntries = 1000

// listDir is list_dir: the names in a directory.
type listDir struct{ root *os.Root }

func (listDir) Spec() Spec {
	return Spec{
		Name:        "list_dir",
		Description: "List a directory of the working directory, one entry a line: files with their size in bytes, directories with a / behind the name, symbolic links with an @.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{` +
			`"path":{"type":"string","minLength":1,"description":"relative to the working directory; . is that itself"}}}`),
		Effect: Read,
		Class:  Internal,
	}
}

func (t listDir) Run(ctx context.Context, args json.RawMessage) (Output, error) {
	var in struct {
		Path string `json:"path"`
	}
	if err := decode(args, &in); err != nil {
		return Output{}, err
	}
	if info, err := t.root.Stat(in.Path); err != nil {
		return refusal(err), nil
	} else if !info.IsDir() {
		return failure("it is not a directory"), nil
	}
	dir, err := t.root.OpenFile(in.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return refusal(err), nil
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxEntries + 1)
	if err != nil && err != io.EOF {
		return refusal(err), nil
	}
	out := Output{}
	if len(entries) > maxEntries {
		entries = entries[:maxEntries]
		out.Cut = true
		out.Note = fmt.Sprintf("[cut: the directory has more than these %d entries]", maxEntries)
	}
	out.Text = listing(entries)
	return out, ctx.Err()
}

// listing is the entries of a directory, a line each, by name. A name that
// could be taken for another line, or that is no UTF-8, is quoted.
func listing(entries []fs.DirEntry) string {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(oneLine(e.Name()))
		switch {
		case e.IsDir():
			b.WriteString("/")
		case e.Type()&fs.ModeSymlink != 0:
			b.WriteString("@")
		case e.Type().IsRegular():
			if info, err := e.Info(); err == nil {
				fmt.Fprintf(&b, " %d", info.Size())
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func oneLine(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return name
	}
	return strconv.Quote(name)
}
