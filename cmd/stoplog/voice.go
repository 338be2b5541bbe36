package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/stoplog/stoplog/internal/diag"
)

// How the program speaks. The rules hold for every command:
//
//   - The result goes to stdout, and nothing else does. All talk goes to stderr.
//     Success without a result is silent.
//   - A line of talk begins with "stoplog: ", is lower case, and has no full
//     stop, no colour, no "error:" and no apology. It says what was tried, on
//     what, and what came of it, in the words of the tour (doc.go).
//   - What the reader can do about it is a hint, on a line of its own. A hint can
//     be carried out as it stands.
//   - A mistake in a file is said as compilers do: its place comes first, in place
//     of the program's name, and the line is shown where it holds no secret.
//   - Talk never repeats what was matched, nor a key. What it does repeat is
//     shown and not obeyed: a file cannot write to the terminal through it.
//   - What policy stopped is an outcome with an exit code of its own, not an
//     error.
//   - Where there is a result, --json gives it for programs; the talk stays as it
//     is, and is not for programs. Programs read exit codes.

// Exit codes.
const (
	exitDone    = 0
	exitError   = 1
	exitUsage   = 2 // the command line, or a file that was asked about, does not check
	exitBlocked = 3 // policy stopped something
	exitWaiting = 4 // a person must decide
	exitSpent   = 5 // out of budget or time
)

// A failure is why a command did not end well.
type failure struct {
	code  int
	err   error
	hints []string
}

func failf(code int, format string, args ...any) *failure {
	return &failure{code: code, err: fmt.Errorf(format, args...)}
}

// hint adds a thing that the reader can do.
func (f *failure) hint(format string, args ...any) *failure {
	f.hints = append(f.hints, fmt.Sprintf(format, args...))
	return f
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// voice talks on stderr. A write that fails there has nobody to be told to.
type voice struct{ w io.Writer }

// sayf says one line.
func (v voice) sayf(format string, args ...any) {
	fmt.Fprintf(v.w, "stoplog: %s\n", diag.Line(fmt.Sprintf(format, args...)))
}

// fail says what went wrong and gives the exit code for it.
func (v voice) fail(err error) int {
	if list := (diag.List)(nil); errors.As(err, &list) {
		_ = list.WriteText(v.w)
	} else {
		v.sayf("%v", err)
	}
	var f *failure
	if !errors.As(err, &f) {
		return exitError
	}
	for _, h := range f.hints {
		v.sayf("hint: %s", h)
	}
	return f.code
}
