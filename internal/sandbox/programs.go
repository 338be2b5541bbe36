package sandbox

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// standardPath is where programs are looked up if the environment has no PATH.
const standardPath = "/usr/local/bin:/usr/bin:/bin"

// searchPath are the absolute directories of an environment's PATH.
func searchPath(env []string) []string {
	list := standardPath
	for _, v := range env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			list = path
		}
	}
	var dirs []string
	for _, dir := range filepath.SplitList(list) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// lookUp finds a program by its name.
func (p *planner) lookUp(name string) (string, error) {
	for _, dir := range p.path {
		file := filepath.Join(dir, name)
		if executable(file) {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no program %q in PATH", name)
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// runnable grants what an entry of Scope.Run stands for.
func (p *planner) runnable(text string) error {
	switch {
	case filepath.IsAbs(text):
		return p.execute(filepath.Clean(text), text)
	case text != "" && !strings.Contains(text, "/"):
		file, err := p.lookUp(text)
		if err != nil {
			return err
		}
		return p.execute(file, text)
	}
	pat, err := parsePattern(text)
	if err != nil {
		return err
	}
	if pat.plain() {
		real, err := filepath.EvalSymlinks(filepath.Join(p.root, pat.front()))
		switch {
		case err != nil:
			return err
		case !inside(p.root, real):
			return fmt.Errorf("pattern %q leads out of the root through a symbolic link", text)
		}
		return p.execute(real, text)
	}
	return p.pattern(text, mayRun)
}

// program finds the program itself. It may always be run.
func (p *planner) program(s Spec) error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errors.New("there is no program to run")
	}
	file := s.Argv[0]
	switch {
	case !strings.Contains(file, "/"):
		found, err := p.lookUp(file)
		if err != nil {
			return err
		}
		file = found
	case !filepath.IsAbs(file):
		file = filepath.Join(p.Dir, file)
	}
	p.Program = file
	return p.execute(file, "the program")
}

// execute grants a file, and what the kernel needs to run it: a script's
// interpreter, a program's loader. A directory is granted whole.
func (p *planner) execute(file, why string) error {
	const deepest = 4 // as many interpreters of interpreters as the kernel follows
	for range deepest {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			return err
		}
		if err := p.grant(real, mayRun, why); err != nil {
			return err
		}
		next, err := p.interpreter(real)
		if err != nil || next == "" {
			return err
		}
		file, why = next, "runs "+filepath.Base(file)
	}
	return nil
}

// interpreter is what runs a file, in place of the kernel; empty if nothing does.
func (p *planner) interpreter(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", nil // a program may be executable and not readable
	}
	defer f.Close()
	head := make([]byte, 256) // what the kernel reads of a script's first line
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", nil // empty, or a directory
	}
	if line, ok := bytes.CutPrefix(head[:n], []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		return p.shebang(strings.Fields(string(line)))
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return "", nil
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			loader, err := io.ReadAll(io.LimitReader(part.Open(), 4096))
			return strings.TrimRight(string(loader), "\x00"), err
		}
	}
	return "", nil
}

// shebang is the interpreter that a script's first line names. Where that is env,
// the program that env looks up is granted too.
func (p *planner) shebang(words []string) (string, error) {
	if len(words) == 0 {
		return "", nil
	}
	if filepath.Base(words[0]) != "env" {
		return words[0], nil
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		file, err := p.lookUp(word)
		if err != nil {
			return "", err
		}
		return words[0], p.execute(file, "runs a script")
	}
	return words[0], nil
}
