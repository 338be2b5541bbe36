package claude

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/flow/steps"
)

// clients is the folder whose package-lock.json names the claude program.
const clients = "../../../e2e"

// realProgram finds the real program, and installs it if it must. Without npm, or
// without a sandbox, the tests of it are skipped; in CI they fail.
var realProgram = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return "", err
	}
	if !checked().Holds {
		return "", errors.New("this machine has no sandbox to give")
	}
	find := func() (string, error) {
		found, err := filepath.Glob(clients + "/node_modules/@anthropic-ai/claude-code-linux-*/claude")
		if err != nil || len(found) == 0 {
			return "", errors.New("npm has no claude for this machine")
		}
		return filepath.Abs(found[0])
	}
	if program, err := find(); err == nil {
		return program, nil
	}
	install := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
	install.Dir = clients
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return find()
})

// A real case is what a model says and what must come of it.
type realCase struct {
	turns  []turn
	scope  flow.Scope
	change func(*flow.Inquiry)
	state  steps.Standing
	reason string // a part of it
	output string
	// after looks at what was left behind.
	after func(t *testing.T, p *provider, out string)
}

const goAnswer = `{"verdict":"go","why":"fine"}`

func bash(script string) turn {
	return turn{calls: []toolCall{{"Bash", fmt.Sprintf(`{"command":%s,"description":"a command"}`, quoted(script))}}}
}

func TestRealClaude(t *testing.T) {
	program, err := realProgram()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the real claude can not be tried: ", err)
		}
		t.Skip("the real claude is not tried: ", err)
	}
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	marker := fmt.Sprintf("%d.%d", 6_000_000+os.Getpid(), time.Now().UnixNano()%1e9)
	anything := flow.Scope{CanRead: []string{"**"}, CanWrite: []string{"out/**"}, CanRun: []string{"cat", "sleep"}}
	never := func(text string) func(*testing.T, *provider, string) {
		return func(t *testing.T, p *provider, _ string) {
			for _, q := range p.questions() {
				for _, m := range q.Messages {
					if strings.Contains(string(m), text) {
						t.Errorf("the model was told %q: %s", text, m)
					}
				}
			}
		}
	}
	for name, c := range map[string]realCase{
		"go":    {turns: []turn{answers(goAnswer)}, state: steps.Passed, output: goAnswer},
		"no-go": {turns: []turn{answers(`{"verdict":"no-go","why":"it broke"}`)}, state: steps.Passed, output: `{"verdict":"no-go","why":"it broke"}`},
		"a tool that reads": {
			turns: []turn{{calls: []toolCall{{"Read", `{"file_path":"WORKDIR/note"}`}}}, answers(goAnswer)},
			scope: flow.Scope{CanRead: []string{"**"}}, state: steps.Passed, output: goAnswer,
			after: func(t *testing.T, p *provider, _ string) {
				if qs := p.questions(); len(qs) != 2 || !strings.Contains(string(qs[1].Messages[len(qs[1].Messages)-1]), "what the note says") {
					t.Errorf("the model was not told what it read: %d questions", len(qs))
				}
			},
		},
		"a tool that writes": {
			turns: []turn{{calls: []toolCall{{"Edit", `{"file_path":"WORKDIR/out/report","old_string":"","new_string":"written"}`}}}, answers(goAnswer)},
			scope: anything, state: steps.Passed, output: goAnswer,
			after: func(t *testing.T, _ *provider, dir string) {
				if text, err := os.ReadFile(filepath.Join(dir, "out/report")); err != nil || string(text) != "written" {
					t.Errorf("wrote %q, %v", text, err)
				}
			},
		},
		"an answer that does not fit":  {turns: []turn{answers(`{"verdict":"maybe"}`)}, state: steps.FailedSchema},
		"a text in place of an answer": {turns: []turn{{text: goAnswer}}, state: steps.FailedSchema},
		"too many tokens": {
			turns: []turn{{endless: true}}, state: steps.FailedBudget, reason: "tokens of 10000",
		},
		"too many tokens in the question": {
			turns: []turn{{in: 20_000}}, state: steps.FailedBudget, reason: "tokens of 10000",
		},
		"too late, with a child that ignores signals": {
			turns: []turn{bash("trap '' TERM INT HUP; sleep " + marker), answers(goAnswer)}, scope: anything,
			change: func(i *flow.Inquiry) { i.MaxLatency = 8 * time.Second },
			state:  steps.FailedTimeout,
			after: func(t *testing.T, p *provider, _ string) {
				if n := len(p.questions()); n != 1 {
					t.Errorf("%d questions, want 1: did the command run?", n)
				}
				if n := processes(t, marker); n != 0 {
					t.Errorf("%d processes are left", n)
				}
			},
		},
		"a denied tool": {
			turns: []turn{{calls: []toolCall{{"Read", fmt.Sprintf(`{"file_path":%q}`, secret)}}}, answers(goAnswer)},
			scope: anything, state: steps.Failed, reason: "denied a tool that it wanted: Read",
		},
		"a command that writes outside": {
			turns: []turn{bash("echo written > " + secret + "; echo written > " + outside + "/new; echo x > note"), answers(goAnswer)}, scope: anything,
			state: steps.Passed, output: goAnswer,
			after: func(t *testing.T, _ *provider, dir string) {
				if text, err := os.ReadFile(secret); err != nil || string(text) != "hunter2" {
					t.Errorf("the file outside is %q, %v", text, err)
				}
				if _, err := os.Stat(outside + "/new"); !os.IsNotExist(err) {
					t.Error("a file was made outside")
				}
				if text, err := os.ReadFile(filepath.Join(dir, "note")); err != nil || string(text) != "what the note says" {
					t.Errorf("a file that it may read is %q, %v", text, err)
				}
			},
		},
		"a command that reaches a port": {
			turns: []turn{bash(fmt.Sprintf("echo hello > /dev/tcp/127.0.0.1/%d && echo it got out", port)), answers(goAnswer)}, scope: anything,
			state: steps.Passed, output: goAnswer,
			after: func(t *testing.T, p *provider, _ string) {
				never("\\nit got out")(t, p, "")
				l.(*net.TCPListener).SetDeadline(time.Now())
				if c, err := l.Accept(); err == nil {
					c.Close()
					t.Error("somebody connected")
				}
			},
		},
		"a command that reads another home": {
			turns: []turn{bash("cat " + secret + " ~root/.ssh/* /proc/1/environ"), answers(goAnswer)}, scope: anything,
			state: steps.Passed, output: goAnswer, after: never("hunter2"),
		},
		"a command that is not named": {
			turns: []turn{bash("id; /usr/bin/id"), answers(goAnswer)}, scope: anything,
			state: steps.Passed, output: goAnswer, after: never("uid="),
		},
		"another model": {turns: []turn{{model: "claude-other-20250101", calls: []toolCall{{answerTool, goAnswer}}}}, state: steps.Failed, reason: "model claude-other-20250101 served"},
	} {
		t.Run(name, func(t *testing.T) { c.try(t, program) })
	}
}

// try asks the real program, as a step does.
func (c realCase) try(t *testing.T, program string) {
	i := inquiry(t)
	i.Scope = c.scope
	if err := os.WriteFile(filepath.Join(i.Workdir, "note"), []byte("what the note says"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, turn := range c.turns {
		for j := range turn.calls {
			turn.calls[j].args = strings.ReplaceAll(turn.calls[j].args, "WORKDIR", i.Workdir)
		}
	}
	if c.change != nil {
		c.change(&i)
	}
	up := &provider{turns: c.turns}
	j := (&Driver{Door: door(t, up), Program: program}).Judge(t.Context(), i)
	if j.State != c.state || !strings.Contains(j.Reason, c.reason) || string(j.Output) != c.output {
		t.Errorf("%s (%s) %s, want %s (…%s…) %s", j.State, j.Reason, j.Output, c.state, c.reason, c.output)
		for _, q := range up.questions() {
			t.Logf("%d messages, the last %.900s", len(q.Messages), q.Messages[len(q.Messages)-1])
		}
	}
	for _, h := range up.header {
		if key := h.Get("X-Api-Key") + h.Get("Authorization"); !strings.Contains(key, "the real key") {
			t.Errorf("the provider was sent the key %q", key)
		}
	}
	if c.after != nil {
		c.after(t, up, i.Workdir)
	}
	if !t.Failed() {
		checks.Add(1)
	}
}

// processes counts the processes of this machine with an argument.
func processes(t *testing.T, argument string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(line), argument) {
			n++
		}
	}
	return n
}
