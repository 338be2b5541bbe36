// Package secret fetches the values that a configuration names and does not hold:
// keys of providers, of the store, of sinks.
//
//	env:NAME ─┐
//	file:PATH ├─► one value, on one line
//	a command ┘
//
// # Laws
//
// A value is in no error and in no log. What is empty, or goes over several
// lines, is no value.
package secret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// A Source says where a secret is: in one of three places. The zero Source is
// none.
type Source struct {
	Env     string   // the environment variable that holds it
	File    string   // the file that does
	Command []string // the program, with its arguments, that prints it
}

// commandTimeout is how long a command may take.
const commandTimeout = 30 * time.Second

var form = regexp.MustCompile(`^(env:[A-Za-z_][A-Za-z0-9_]*|file:\PC+)$`)

// Parse reads `env:NAME` or `file:PATH`. It does not repeat what is neither: that
// may be a secret.
func Parse(s string) (Source, error) {
	if !form.MatchString(s) {
		return Source{}, errors.New("not env:NAME or file:PATH")
	}
	where, name, _ := strings.Cut(s, ":")
	if where == "env" {
		return Source{Env: name}, nil
	}
	return Source{File: name}, nil
}

// String is the source as Parse reads it; of a command it is the program's name.
func (s Source) String() string {
	switch {
	case s.Env != "":
		return "env:" + s.Env
	case s.File != "":
		return "file:" + s.File
	case len(s.Command) > 0:
		return "command " + s.Command[0]
	}
	return ""
}

// IsZero reports whether the source is none.
func (s Source) IsZero() bool { return s.Env == "" && s.File == "" && len(s.Command) == 0 }

// Read gives the secret, without white space around it. A command has 30 seconds,
// this program's environment, and nothing on its standard input; what it says on
// standard error goes where this program's own talk goes.
func (s Source) Read(getenv func(string) string) (string, error) {
	switch {
	case s.Env != "":
		value := strings.TrimSpace(getenv(s.Env))
		if value == "" {
			return "", fmt.Errorf("environment variable %s is not set", s.Env)
		}
		if !oneLine(value) {
			return "", fmt.Errorf("environment variable %s has more than one line", s.Env)
		}
		return value, nil
	case len(s.Command) > 0:
		return s.run()
	}
	data, err := os.ReadFile(s.File)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(data))
	if value == "" || !oneLine(value) {
		return "", fmt.Errorf("file %s must hold it, alone on one line", s.File)
	}
	return value, nil
}

func (s Source) run() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("command %s: %w", s.Command[0], err)
	}
	value := strings.TrimSpace(string(out))
	if value == "" || !oneLine(value) {
		return "", fmt.Errorf("command %s must print it, alone on one line", s.Command[0])
	}
	return value, nil
}

func oneLine(s string) bool { return !strings.ContainsAny(s, "\r\n") }
