package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gatePlaybook asks the real claude for a verdict, in the sandbox. SCOPE and LIMIT
// are a case's.
const gatePlaybook = `playbook: gate
status: active
steps:
  - id: verdict
    type: claude
    model: claude-sonnet-4-5@20250929
    prompt_ref: gate.md@v1
    scope: SCOPE
    max_latency_seconds: LIMIT
    max_tokens_per_run: 10000
    output: {type: object, required: [verdict, why], properties: {verdict: {enum: [go, no-go]}, why: {type: string}}}
    on_verdict: {go: continue, no-go: fail}
`

const gatePrompt = `---
model: claude-sonnet-4-5@20250929
output: {type: object, required: [verdict, why], properties: {verdict: {enum: [go, no-go]}, why: {type: string}}}
---
Say whether this may go out: go or no-go.
`

// A gateCase is what a model says to the step, and what becomes of the run.
type gateCase struct {
	turns []said
	limit int // seconds; 60 if 0
	free  bool
	exit  int
	state string
	// after looks at what is left behind: in the folder, at the model, anywhere.
	after func(t *testing.T, dir string, m *model)
}

const goes = `{"verdict":"go","why":"fine"}`

// verdict is an answer of the kind that the program gives by a tool.
func verdict(args string) said { return said{tool: "StructuredOutput", args: args} }

func command(script string) said {
	args, err := json.Marshal(map[string]string{"command": script, "description": "a command"})
	if err != nil {
		panic(err)
	}
	return said{tool: "Bash", args: string(args)}
}

// TestClaudeSteps runs a step of type claude with the real program, as a user
// does: stoplog run, with an empty home, a made-up key and a model on loopback.
func TestClaudeSteps(t *testing.T) {
	path := claudePath(t)
	claudeAsked.Store(true)
	outside := t.TempDir()
	home := filepath.Join(outside, "home")
	secret := filepath.Join(home, "diary")
	for _, err := range []error{os.Mkdir(home, 0o755), os.WriteFile(secret, []byte("hunter2"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	marker := fmt.Sprintf("%d.%09d", 3_000_000+os.Getpid(), time.Now().UnixNano()%1e9)
	for name, c := range map[string]gateCase{
		"go":           {turns: []said{verdict(goes)}, state: "passed"},
		"no-go":        {turns: []said{verdict(`{"verdict":"no-go","why":"it broke"}`)}, exit: 3, state: "blocked"},
		"no such word": {turns: []said{verdict(`{"verdict":"maybe","why":"x"}`)}, exit: 1, state: "failed_schema"},
		"too much":     {turns: []said{{endless: true}}, exit: 5, state: "failed_budget_exceeded"},
		"too late, with a child that ignores signals": {
			turns: []said{command("trap '' TERM INT HUP; sleep " + marker), verdict(goes)}, free: true, limit: 8, exit: 5, state: "failed_timeout",
			after: func(t *testing.T, _ string, m *model) {
				if n := m.asked(); n != 1 {
					t.Errorf("asked %d times: did the command run?", n)
				}
				files, err := filepath.Glob("/proc/[0-9]*/cmdline")
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					if line, err := os.ReadFile(f); err == nil && bytes.Contains(line, []byte(marker)) {
						t.Errorf("%s is left", f)
					}
				}
			},
		},
		"a denied tool": {
			turns: []said{{tool: "Read", args: fmt.Sprintf(`{"file_path":%q}`, secret)}, verdict(goes)}, free: true, exit: 1, state: "failed",
			after: func(t *testing.T, _ string, m *model) { m.neverHeard(t, "hunter2") },
		},
		"writes outside": {
			turns: []said{command("echo x > " + secret + "; echo x > " + home + "/new; echo x > playbooks/new"), verdict(goes)}, free: true, state: "passed",
			after: func(t *testing.T, dir string, _ *model) {
				if text, err := os.ReadFile(secret); err != nil || string(text) != "hunter2" {
					t.Errorf("the file outside has %q, %v", text, err)
				}
				for _, name := range []string{home + "/new", dir + "/playbooks/new"} {
					if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
						t.Errorf("%s was made", name)
					}
				}
			},
		},
		"reaches a port": {
			turns: []said{command(fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && echo it got out", l.Addr().(*net.TCPAddr).Port)), verdict(goes)}, free: true, state: "passed",
			after: func(t *testing.T, _ string, _ *model) {
				l.(*net.TCPListener).SetDeadline(time.Now())
				if c, err := l.Accept(); err == nil {
					c.Close()
					t.Error("somebody connected")
				}
			},
		},
		"reads another home": {
			turns: []said{command("cat " + secret + "; ls " + home), verdict(goes)}, free: true, state: "passed",
			after: func(t *testing.T, _ string, m *model) { m.neverHeard(t, "hunter2") },
		},
	} {
		t.Run(name, func(t *testing.T) { c.try(t, path) })
	}
}

// claudePath is a PATH with the real claude in it. Where the kernel has no sandbox
// the tests of it are skipped, but in CI.
func claudePath(t *testing.T) string {
	t.Helper()
	if noNode != nil {
		t.Skip("no claude: ", noNode)
	}
	if out, err := exec.Command(program, "doctor").CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("there is no sandbox: %s", out)
		}
		t.Skipf("there is no sandbox: %s", out)
	}
	return claudeFolder(t) + string(os.PathListSeparator) + os.Getenv("PATH")
}

// claudeFolder is where npm has put the claude of this machine.
func claudeFolder(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("node_modules/@anthropic-ai/claude-code-linux-*/claude")
	if err != nil || len(found) == 0 {
		t.Fatalf("npm has no claude for this machine: %v", err)
	}
	dir, err := filepath.Abs(filepath.Dir(found[0]))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// try runs the playbook in a folder of its own.
func (c gateCase) try(t *testing.T, path string) {
	m := newModel(t, c.turns)
	dir := t.TempDir()
	scope, limit := "{can_read: [], can_write: [], can_run: []}", max(c.limit, 0)
	if c.free {
		scope = `{can_read: ["**"], can_write: ["tmp/**"], can_run: [cat, ls, sleep]}`
	}
	if limit == 0 {
		limit = 60
	}
	for name, text := range map[string]string{
		"playbooks/gate.yaml":              strings.NewReplacer("SCOPE", scope, "LIMIT", fmt.Sprint(limit)).Replace(gatePlaybook),
		"prompts/gate@v1.md":               gatePrompt,
		"prompts/gate@v1.corpus/README.md": "Cases come here.\n",
		"stoplog.yaml": `version: 1
upstreams: {anthropic: {protocol: anthropic, base_url: "` + m.server.URL + `", zone: local}}
profiles: {default: {extends: builtin, upstream: [anthropic], models: ["*"]}}
gateway: {anthropic: default}
`,
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "run", "--config", "stoplog.yaml", "--json", "playbooks/gate.yaml")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+path, "XDG_STATE_HOME="+t.TempDir())
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != c.exit || lastState(t, out.Bytes()) != c.state {
		t.Errorf("exit code %d, step %s, want %d, %s\n%s\n%s", got, lastState(t, out.Bytes()), c.exit, c.state, out.Bytes(), talk.Bytes())
	}
	if c.after != nil {
		c.after(t, dir, m)
	}
	if !t.Failed() {
		checks.Add(1)
	}
}

// lastState is the last state that the events tell of the step.
func lastState(t *testing.T, events []byte) (state string) {
	t.Helper()
	for line := range bytes.Lines(events) {
		var e struct {
			Event string
			Data  struct{ State string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if e.Event == "step" {
			state = e.Data.State
		}
	}
	return state
}
