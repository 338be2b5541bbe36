package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MaxText is the most text of a result that a model is shown, in bytes.
const MaxText = 64 << 10

// contextBytes is how much is read around what was asked for: as much as a
// rule may hold back before its search is cut.
const contextBytes = 16 << 10

// Workdir is a run's working directory, with the tools that come with the
// product. Reading goes through an [os.Root], so no path and no symbolic link
// leads out of it; a command starts in it, and is held to it where this machine has
// a sandbox to give.
type Workdir struct {
	path string
	root *os.Root
}

// OpenWorkdir opens a directory.
func OpenWorkdir(path string) (*Workdir, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("open the working directory: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open the working directory: %w", err)
	}
	return &Workdir{abs, root}, nil
}

// Path is the directory's absolute path, without symbolic links.
func (w *Workdir) Path() string { return w.path }

// Close closes the directory; its tools can read nothing afterwards.
func (w *Workdir) Close() error { return w.root.Close() }

// Tools are read_file, list_dir and, on Linux, run_command.
func (w *Workdir) Tools() []Tool {
	return append([]Tool{readFile{w.root}, listDir{w.root}}, commands(w.path)...)
}

// decode reads arguments that were checked against a tool's schema.
func decode(args json.RawMessage, v any) error {
	if err := json.Unmarshal(args, v); err != nil {
		return fmt.Errorf("read the arguments of a tool: %w", err)
	}
	return nil
}

// refusal says why a path cannot be opened, without the path: the model knows
// it, and an absolute one would tell where the directory is.
func refusal(err error) Output {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failure("there is no such file or directory")
	case errors.Is(err, fs.ErrPermission):
		return failure("permission denied")
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return failure("cannot open it: %v", p.Err)
	}
	return failure("cannot open it")
}
