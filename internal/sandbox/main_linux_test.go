package sandbox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// hostVariable makes the test's own program a host, which is then killed.
const hostVariable = "STOPLOG_TEST_HOST"

func TestMain(m *testing.M) {
	Main()
	if os.Args[0] == attackerName {
		os.Exit(attacker(os.Args[1:]))
	}
	if os.Getenv(hostVariable) != "" {
		os.Exit(hostOfSleep())
	}
	goleak.VerifyTestMain(m)
}

// room is a directory with a scope, and a place outside of it.
type room struct{ root, outside string }

func newRoom(t *testing.T) room {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := room{filepath.Join(dir, "root"), filepath.Join(dir, "outside")}
	for _, d := range []string{r.root, r.outside, filepath.Join(r.root, "in"), filepath.Join(r.root, "out")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(r.outside, "secret"), "hunter2")
	write(t, filepath.Join(r.root, "in", "note"), "a note")
	return r
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shell is a specification of a shell script, in a scope that reads in/**,
// writes out/** and runs the programs named.
func (r room) shell(script string, run ...string) Spec {
	return Spec{
		Argv:   []string{"sh", "-c", script},
		Env:    []string{"PATH=" + standardPath},
		Scope:  Scope{Root: r.root, Read: []string{"in/**"}, Write: []string{"out/**"}, Run: run},
		Limits: Limits{Wall: time.Minute},
	}
}

// outcome is a result and what was written.
type outcome struct {
	Result
	stdout, stderr string
}

// do runs a program to its end.
func do(t *testing.T, s Spec) outcome {
	t.Helper()
	needsSandbox(t)
	var stdout, stderr bytes.Buffer
	s.Stdout, s.Stderr = &stdout, &stderr
	r, err := Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return outcome{r, stdout.String(), stderr.String()}
}

// checked is what this machine can enforce.
var checked = sync.OnceValue(func() Report { return Check(context.Background()) })

// needsSandbox skips a test where the kernel has no sandbox to give, which is a
// failure in CI.
func needsSandbox(t *testing.T) {
	t.Helper()
	r := checked()
	if r.Holds {
		return
	}
	for _, p := range r.Parts {
		if !p.Holds {
			t.Logf("%s: %s", p.Name, p.Detail)
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("this machine has no sandbox to give")
	}
	t.Skip("this machine has no sandbox to give")
}
