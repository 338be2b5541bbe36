package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// scratch is what a program gets to write to and nobody keeps: its home, and a
// directory for temporary files.
type scratch struct{ dir string }

func newScratch() (*scratch, error) {
	dir, err := os.MkdirTemp("", "stoplog-sandbox-")
	if err != nil {
		return nil, fmt.Errorf("make a home for the program: %w", err)
	}
	// A link in the way to it would be refused later.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("make a home for the program: %w", err)
	}
	s := &scratch{dir}
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			s.remove()
			return nil, fmt.Errorf("make a home for the program: %w", err)
		}
	}
	return s, nil
}

// into gives a program its home and its directory for temporary files.
func (s *scratch) into(spec *Spec) {
	spec.Env = append([]string{}, spec.Env...)
	spec.Write = append([]string{filepath.Join(s.dir, "home"), filepath.Join(s.dir, "tmp")}, spec.Write...)
	for name, dir := range map[string]string{"HOME": "home", "TMPDIR": "tmp"} {
		if !hasVariable(spec.Env, name) {
			spec.Env = append(spec.Env, name+"="+filepath.Join(s.dir, dir))
		}
	}
}

func hasVariable(env []string, name string) bool {
	for _, v := range env {
		if strings.HasPrefix(v, name+"=") {
			return true
		}
	}
	return false
}

// remove removes it, also where a program took its own rights away.
func (s *scratch) remove() {
	if os.RemoveAll(s.dir) == nil {
		return
	}
	filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(name, 0o700)
		}
		return nil
	})
	os.RemoveAll(s.dir)
}
