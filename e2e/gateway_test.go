package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a program or a client may take for one thing; far more
// than it needs.
const patience = 30 * time.Second

// A gateway is a running `stoplog serve`.
type gateway struct {
	url    string
	state  string // its XDG_STATE_HOME
	cmd    *exec.Cmd
	said   *speech
	exited chan error // closed when the program is known to have ended
}

// serve starts the program on a configuration. The gateway ends with the test,
// or at stop.
func serve(t *testing.T, config string) *gateway {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "stoplog.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gateway{
		state:  filepath.Join(dir, "state"),
		said:   &speech{address: make(chan string, 1)},
		exited: make(chan error, 1),
	}
	g.cmd = exec.Command(program, "serve", "--config", file, "--listen", "127.0.0.1:0")
	g.cmd.Dir = dir
	g.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+g.state)
	g.cmd.Stdout, g.cmd.Stderr = g.said, g.said
	if err := g.cmd.Start(); err != nil {
		t.Fatalf("start stoplog serve: %v", err)
	}
	go func() {
		g.exited <- g.cmd.Wait()
		close(g.exited)
	}()
	t.Cleanup(func() { g.stop(t) })

	select {
	case addr := <-g.said.address:
		g.url = "http://" + addr
	case err := <-g.exited:
		t.Fatalf("stoplog serve ended with %v; it said:\n%s", err, g.said)
	case <-time.After(patience):
		t.Fatalf("stoplog serve told no address; it said:\n%s", g.said)
	}
	return g
}

// stop ends the program as an operator would, and wants it to end well.
func (g *gateway) stop(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("stop stoplog serve: %v", err)
	}
	select {
	case err := <-g.exited:
		if err != nil {
			t.Errorf("stoplog serve ended with %v; it said:\n%s", err, g.said)
		}
	case <-time.After(patience):
		t.Errorf("stoplog serve did not end; it said:\n%s", g.said)
		g.cmd.Process.Kill()
		<-g.exited
	}
}

// A record is an event of a request's run, as far as these tests ask.
type record struct {
	Kind   string
	Status string
	Usage  struct {
		Input     int64 `json:"input"`
		Output    int64 `json:"output"`
		Estimated bool  `json:"estimated"`
	}
}

// records reads what the gateway recorded of each run: the journal, as the
// program exports it.
func (g *gateway) records(t *testing.T) map[string][]record {
	t.Helper()
	export := exec.Command(program, "audit", "export", "--store", filepath.Join(g.state, "stoplog", "stoplog.db"))
	text, err := export.Output()
	if err != nil {
		t.Fatalf("export the journal: %v", err)
	}
	runs := map[string][]record{}
	for line := range bytes.Lines(text) {
		var e struct {
			Event *struct {
				Run, Kind string
				Payload   json.RawMessage
			}
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("the export: %v in %q", err, line)
		}
		if e.Event == nil {
			continue
		}
		r := record{Kind: e.Event.Kind}
		if err := json.Unmarshal(e.Event.Payload, &r); err != nil {
			t.Fatalf("the export: %v in %q", err, line)
		}
		runs[e.Event.Run] = append(runs[e.Event.Run], r)
	}
	return runs
}

// speech keeps what a program says, and picks the address out of it.
type speech struct {
	mu      sync.Mutex
	text    bytes.Buffer
	told    bool
	address chan string
}

var loopback = regexp.MustCompile(`127\.0\.0\.1:[1-9]\d*`)

func (s *speech) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	// A line may come in pieces, and an address is whole when something follows.
	if at := loopback.FindIndex(s.text.Bytes()); !s.told && at != nil && at[1] < s.text.Len() {
		s.told = true
		s.address <- string(s.text.Bytes()[at[0]:at[1]])
	}
	return len(p), nil
}

func (s *speech) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
