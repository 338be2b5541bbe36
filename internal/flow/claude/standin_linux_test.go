package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/flow/steps"
)

// standInVariable makes the test's own program stand in for claude, and says how
// it misbehaves.
const standInVariable = "STOPLOG_STAND_IN"

// What a well-behaved program says.
const (
	saysInit   = `{"type":"system","subtype":"init","model":"` + pin + `","tools":["StructuredOutput"],"mcp_servers":[],"permissionMode":"dontAsk"}`
	saysAnswer = `{"type":"assistant","message":{"id":"msg_1","model":"` + pin + `","usage":{"input_tokens":10,"output_tokens":10}}}`
	saysResult = `{"type":"result","subtype":"success","is_error":false,"permission_denials":[],"structured_output":{"verdict":"go","why":"fine"}}`
)

// misbehaviours are what the stand-in can do, each reported of the real program.
var misbehaviours = map[string]func() int{
	"none":         func() int { return say(saysInit, callModel(pin), saysAnswer, saysResult) },
	"says nothing": func() int { return 0 },
	"error with success": func() int {
		return say(saysInit, callModel(pin), saysAnswer, with(saysResult, `"is_error":true,"api_error_status":429`))
	},
	"denied": func() int {
		return say(saysInit, callModel(pin), saysAnswer, with(saysResult, `"permission_denials":[{"tool_name":"Bash"}]`))
	},
	"stops in the middle": func() int {
		say(saysInit, callModel(pin), saysAnswer)
		select {}
	},
	"ignores signals, with a child": func() int {
		signal.Ignore()
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), standInVariable+"=hangs", "MARKER="+os.Getenv("MARKER"))
		child.Args = []string{"claude", os.Getenv("MARKER")}
		child.Stdout = os.Stdout // which holds the pipe open (charmbracelet/crush#3878)
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return say(err.Error())
		}
		say(saysInit, callModel(pin), saysAnswer)
		select {}
	},
	"hangs": func() int { signal.Ignore(); select {} },
	"leaves a child": func() int {
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), standInVariable+"=hangs")
		child.Args = []string{"claude", os.Getenv("MARKER")}
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return say(err.Error())
		}
		return say(saysInit, callModel(pin), saysAnswer, saysResult)
	},
	"two results": func() int { return say(saysInit, callModel(pin), saysAnswer, saysResult, saysResult) },
	"background task": func() int {
		return say(saysInit, callModel(pin), `{"type":"system","subtype":"task_started","task_id":"t"}`, saysResult)
	},
	"blank": func() int {
		return say(saysInit, callModel(pin), saysAnswer, with(saysResult, `"structured_output":""`))
	},
	"markdown": func() int {
		return say(saysInit, callModel(pin), saysAnswer, with(saysResult, "\"structured_output\":\"```json\\n{}\\n```\""))
	},
	"no output": func() int {
		return say(saysInit, callModel(pin), saysAnswer, with(saysResult, `"structured_output":null`))
	},
	"fits the second time": func() int {
		prompt, err := io.ReadAll(os.Stdin)
		if err != nil || !strings.Contains(string(prompt), "your answer could not be used: it gave no structured output") {
			return say(saysInit, callModel(pin), saysAnswer, with(saysResult, `"structured_output":null`))
		}
		return say(saysInit, callModel(pin), saysAnswer, saysResult)
	},
	"max turns": func() int {
		say(saysInit, callModel(pin), saysAnswer, `{"type":"result","subtype":"error_max_turns","is_error":true,"errors":[]}`)
		return 1
	},
	"array": func() int { return say("[" + saysInit + "," + callModel(pin) + saysAnswer + "," + saysResult + "]") },
	"floods": func() int {
		for {
			if say(`{"type":"system","subtype":"status","text":"`+strings.Repeat("x", 1<<20)+`"}`) != 0 {
				return 1
			}
		}
	},
	"sub-agents take too much": func() int {
		say(saysInit)
		for {
			callModel(pin)
		}
	},
	"another model": func() int {
		return say(saysInit, callModel("claude-haiku-4-5-20251001"), saysAnswer, saysResult)
	},
	"another key": func() int {
		os.Setenv("ANTHROPIC_API_KEY", "sk-ant-made-up")
		return say(saysInit, callModel(pin), saysAnswer, saysResult)
	},
	"asks again":  func() int { return say(saysInit, callModel(pin), callModel(pin), saysAnswer, saysResult) },
	"asks nobody": func() int { return say(saysInit, saysAnswer, saysResult) },
	"crashes": func() int {
		syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		select {}
	},
	"exit 1": func() int { say(saysInit, callModel(pin), saysAnswer, saysResult); return 1 },
	"tells what it sees": func() int {
		names := []string{}
		for _, v := range os.Environ() {
			name, _, _ := strings.Cut(v, "=")
			names = append(names, name)
		}
		text, err := json.Marshal(strings.Join(names, " "))
		if err != nil {
			return 1
		}
		return say(saysInit, callModel(pin), saysAnswer, with(saysResult, fmt.Sprintf(`"structured_output":{"verdict":"go","why":%s}`, text)))
	},
}

func standIn(how string) int { return misbehaviours[how]() }

// say writes lines; an empty one is left out.
func say(lines ...string) int {
	for _, line := range lines {
		if line == "" {
			continue
		}
		if _, err := fmt.Println(line); err != nil {
			return 1
		}
	}
	return 0
}

// with is a result with other members.
func with(result, members string) string {
	var all map[string]json.RawMessage
	for _, text := range []string{result, "{" + members + "}"} {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			panic(err)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// callModel asks a model at the gate, as the program does. It says nothing.
func callModel(model string) string {
	body := fmt.Sprintf(`{"model":%q,"max_tokens":100,"stream":true,"messages":[{"role":"user","content":"go or no-go?"}]}`, model)
	r, err := http.NewRequest(http.MethodPost, os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages?beta=true", bytes.NewReader([]byte(body)))
	if err != nil {
		panic(err)
	}
	r.Header.Set("x-api-key", os.Getenv("ANTHROPIC_API_KEY"))
	r.Header.Set("anthropic-version", "2023-06-01")
	r.Header.Set("content-type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return ""
}

// A standInCase is a misbehaviour and what must come of it.
type standInCase struct {
	change func(*flow.Inquiry, *Driver)
	state  steps.Standing
	reason string // a part of it
	asked  int    // how often the provider was asked; 0 is once, −1 any number
}

func TestStandIn(t *testing.T) {
	needsSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	marker := fmt.Sprintf("%d.%d", 5_000_000+os.Getpid(), time.Now().UnixNano()%1e9)
	quick := func(_ *flow.Inquiry, d *Driver) { d.Idle = 700 * time.Millisecond }
	for how, c := range map[string]standInCase{
		"none":                          {state: steps.Passed},
		"array":                         {state: steps.Passed},
		"fits the second time":          {state: steps.Passed, asked: 2},
		"says nothing":                  {state: steps.Failed, reason: "it said nothing, and exited with 0", asked: -1},
		"error with success":            {state: steps.Failed, reason: "its result is an error: status 429"},
		"denied":                        {state: steps.Failed, reason: "it was denied a tool that it wanted: Bash"},
		"stops in the middle":           {state: steps.FailedTimeout, reason: "nothing came of it for too long", change: quick},
		"ignores signals, with a child": {state: steps.FailedTimeout, reason: "it took longer than it may", change: func(i *flow.Inquiry, _ *Driver) { i.MaxLatency = 3 * time.Second }},
		"leaves a child":                {state: steps.Failed, reason: "it left 1 processes running"},
		"two results":                   {state: steps.Failed, reason: "it gave 2 results"},
		"background task":               {state: steps.Failed, reason: "1 of its tasks had not ended"},
		"blank":                         {state: steps.FailedSchema, reason: "asked twice", asked: 2},
		"markdown":                      {state: steps.FailedSchema, reason: "asked twice", asked: 2},
		"no output":                     {state: steps.FailedSchema, reason: "it gave no structured output (asked twice", asked: 2},
		"max turns":                     {state: steps.Failed, reason: "its result is error_max_turns"},
		"floods":                        {state: steps.Failed, reason: "it wrote more than it may", asked: -1},
		"sub-agents take too much":      {state: steps.FailedBudget, reason: "tokens of 10000", asked: -1},
		"another model":                 {state: steps.Failed, reason: "model claude-haiku-4-5-20251001 served", asked: -1},
		"another key":                   {state: steps.Failed, reason: "no answer of a model is known", asked: -1},
		"asks nobody":                   {state: steps.Failed, reason: "no answer of a model is known", asked: -1},
		"crashes":                       {state: steps.Failed, reason: "it said nothing, and "},
		"exit 1":                        {state: steps.Failed, reason: "it exited with 1"},
	} {
		t.Run(how, func(t *testing.T) {
			i := inquiry(t)
			i.Env = map[string]string{standInVariable: how, "MARKER": marker}
			up := &provider{turns: []turn{{text: "made up", in: 90, out: 10}}}
			d := &Driver{Door: door(t, up), Program: self}
			if c.change != nil {
				c.change(&i, d)
			}
			j := d.Judge(t.Context(), i)
			if j.State != c.state || !strings.Contains(j.Reason, c.reason) {
				t.Errorf("%s (%s), want %s (…%s…)", j.State, j.Reason, c.state, c.reason)
			}
			if (j.State == steps.Passed) != (j.Output != nil) {
				t.Errorf("%s with the output %s", j.State, j.Output)
			}
			n := len(up.questions())
			switch {
			case c.asked == 0 && n > 1, c.asked > 0 && n != c.asked:
				t.Errorf("the provider was asked %d times", n)
			case c.asked >= 0 && n > 0 && j.Usage.Input+j.Usage.Output != int64(n)*100:
				t.Errorf("%d calls of 100 tokens took %+v", n, j.Usage)
			}
			if n := processes(t, marker); n != 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}

// The program gets the step's environment and the runtime's, and nothing of ours.
func TestStandInEnvironment(t *testing.T) {
	needsSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "hunter2")
	t.Setenv("STOPLOG_TEST_KEY", "hunter2")
	i := inquiry(t)
	i.Env = map[string]string{standInVariable: "tells what it sees"}
	up := &provider{turns: []turn{{text: "made up"}}}
	j := (&Driver{Door: door(t, up), Program: self}).Judge(t.Context(), i)
	if j.State != steps.Passed {
		t.Fatalf("%s: %s", j.State, j.Reason)
	}
	for _, name := range []string{"ANTHROPIC_AUTH_TOKEN", "STOPLOG_TEST_KEY"} {
		if strings.Contains(string(j.Output), name) {
			t.Errorf("it sees %s: %s", name, j.Output)
		}
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "HOME", "TMPDIR"} {
		if !strings.Contains(string(j.Output), name) {
			t.Errorf("it does not see %s: %s", name, j.Output)
		}
	}
	for _, name := range []string{"ANTHROPIC_BASE_URL", "CLAUDE_CODE_USE_BEDROCK", "DISABLE_AUTOUPDATER"} {
		i.Env = map[string]string{name: "x"}
		if j := (&Driver{Door: door(t, up), Program: self}).Judge(t.Context(), i); j.State != steps.Failed || !strings.Contains(j.Reason, name) {
			t.Errorf("with %s of the step's: %s (%s)", name, j.State, j.Reason)
		}
	}
}

func TestNoProgram(t *testing.T) {
	i := inquiry(t)
	t.Setenv("PATH", "")
	if j := (&Driver{}).Judge(t.Context(), i); j.State != steps.Failed || !strings.Contains(j.Reason, "there is no claude program") {
		t.Errorf("%s (%s)", j.State, j.Reason)
	}
	needsSandbox(t)
	d := &Driver{Program: filepath.Join(i.Workdir, "none")}
	if j := d.Judge(t.Context(), i); j.State != steps.Failed || !strings.Contains(j.Reason, "no such file") {
		t.Errorf("%s (%s)", j.State, j.Reason)
	}
}

// A guard stops a call at the gate: the step is blocked, whatever the program
// makes of it.
func TestStandInBlocked(t *testing.T) {
	needsSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	i := inquiry(t)
	i.Env = map[string]string{standInVariable: "none"}
	up := &provider{turns: []turn{{text: "the key is " + key + " as you know"}}}
	j := (&Driver{Door: door(t, up, secrets(t)), Program: self}).Judge(t.Context(), i)
	if j.State != steps.Blocked || !strings.Contains(j.Reason, "guard secrets, rule aws") || j.Output != nil {
		t.Errorf("%s (%s) %s", j.State, j.Reason, j.Output)
	}
}

// Cancelled, the program is gone when Judge returns.
func TestStandInCancelled(t *testing.T) {
	needsSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	marker := fmt.Sprintf("%d.%d", 9_000_000+os.Getpid(), time.Now().UnixNano()%1e9)
	i := inquiry(t)
	i.Env = map[string]string{standInVariable: "ignores signals, with a child", "MARKER": marker}
	i.Show = func(string, string) { cancel() } // the model has begun to answer
	j := (&Driver{Door: door(t, &provider{turns: []turn{{text: "made up"}}}), Program: self}).Judge(ctx, i)
	if j.State != steps.Cancelled {
		t.Errorf("%s (%s)", j.State, j.Reason)
	}
	if n := processes(t, marker); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// What the playbook has left is asked about before the call, either way.
func TestPlaybookBudget(t *testing.T) {
	needsSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	left := int64(5)
	for _, via := range []flow.Via{flow.ViaCLI, flow.ViaAPI} {
		i := inquiry(t)
		i.Via, i.Env = via, map[string]string{standInVariable: "none"}
		up := &provider{turns: []turn{{text: goAnswer}}}
		d := &Driver{Door: doorWith(t, up, []govern.Budget{{Kind: "playbook", Name: "gate", Tokens: &left}}), Program: self}
		j := d.Judge(t.Context(), i)
		if j.State != steps.FailedBudget || !strings.Contains(j.Reason, "a budget is spent") || len(up.questions()) != 0 {
			t.Errorf("via %s: %s (%s), and the provider was asked %d times", via, j.State, j.Reason, len(up.questions()))
		}
	}
}

// A provider that fails once is no policy: the program may ask again.
func TestProviderFailsOnce(t *testing.T) {
	needsSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	i := inquiry(t)
	i.Env = map[string]string{standInVariable: "asks again"}
	up := &provider{turns: []turn{{status: 529}, {text: "made up"}}}
	if j := (&Driver{Door: door(t, up), Program: self}).Judge(t.Context(), i); j.State != steps.Passed {
		t.Errorf("%s (%s)", j.State, j.Reason)
	}
}
