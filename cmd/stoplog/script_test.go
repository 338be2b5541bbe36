package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite what scripts compare with")

// binary is the program under test, built once. It carries no commit: git may
// refuse to speak of a tree that another user owns.
var binary string

func TestMain(m *testing.M) {
	os.Exit(withBinary(m))
}

func withBinary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "stoplog-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "stoplog")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building stoplog: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// TestScript drives the real binary through testdata/script. Beside testscript's
// own commands a script has
//
//	exits CODE stoplog ARG…    run it and want that exit code
//	grab NAME FILE REGEXP      set the variable NAME to what the group matches
//	bytes FILE TEXT [COUNT]    write TEXT, with Go's escapes, COUNT times
//	serving FLAG…              start `stoplog serve` and wait until it listens
//	ask PATH [BODY [PROFILE]]  ask it, with the key in the variable KEY; the answer is stdout:
//	                           the status, then the body
//	ends CODE                  end it by SIGTERM, want that exit code; its talk is stderr
//
// and the variables ESC, the character that begins a terminal's control sequences,
// EXAMPLES, the project's folder of them, and AGENT, the folder of an agent's cassette.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("ESC", "\x1b")
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", examples)
			agent, err := filepath.Abs("testdata/agent")
			if err != nil {
				return err
			}
			env.Setenv("AGENT", agent)
			env.Setenv("USER", "ann")
			env.Values[serverKey{}] = &server{}
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/.config")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/.state")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   scriptExits,
			"grab":    scriptGrab,
			"bytes":   scriptBytes,
			"serving": scriptServing,
			"ask":     scriptAsk,
			"becomes": scriptBecomes,
			"ends":    scriptEnds,
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("running %s: %v", args[1], err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

func scriptGrab(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: grab NAME FILE REGEXP")
	}
	re, err := regexp.Compile(args[2])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile(args[1]))
	if len(m) != 2 {
		ts.Fatalf("%s has no %s", args[1], re)
	}
	ts.Setenv(args[0], m[1])
}

func scriptBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: bytes FILE TEXT [COUNT]")
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(args[1], `"`, `\"`) + `"`)
	ts.Check(err)
	count := 1
	if len(args) == 3 {
		count, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(text, count)), 0o600))
}
