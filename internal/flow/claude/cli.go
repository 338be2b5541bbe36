package claude

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stoplog/stoplog/internal/sandbox"
)

// askCLI asks with `claude -p` in a sandbox.
func (q *question) askCLI(ctx context.Context, prompt string) Reading {
	if r := over(ctx); r != nil {
		return *r
	}
	spec, err := q.spec(prompt)
	if err != nil {
		return *failed("%v", err)
	}
	r := &running{question: q, prompt: prompt, started: make(chan struct{})}
	q.meter.turn(r.kill)
	defer q.meter.turn(nil)
	r.gate = &gate{door: q.driver.Door, asking: ctx, profile: q.Profile, parent: string(q.Run.Run), pin: q.Model, key: newKey(), meter: q.meter, active: r.beat, show: q.Show}
	spec.Env = append(spec.Env, "ANTHROPIC_API_KEY="+r.gate.key)
	spec.Services = []sandbox.Service{{Port: gatePort, Serve: r.gate.serve}}
	spec.Stdout, spec.Stderr = r, io.Discard
	return r.run(ctx, spec)
}

// mostOutput is how much the program may write.
const mostOutput = 64 << 20

// settings are what the program is told of itself by its environment: it reaches
// its provider at the gate, and nothing that it does beside that. Whatever it
// asks in the background, it asks of the pinned model.
func settings(model string) []string {
	return []string{
		fmt.Sprintf("ANTHROPIC_BASE_URL=http://127.0.0.1:%d/anthropic", gatePort),
		"ANTHROPIC_MODEL=" + model, "ANTHROPIC_SMALL_FAST_MODEL=" + model, "ANTHROPIC_DEFAULT_HAIKU_MODEL=" + model,
		"ANTHROPIC_DEFAULT_SONNET_MODEL=" + model, "ANTHROPIC_DEFAULT_OPUS_MODEL=" + model, "CLAUDE_CODE_SUBAGENT_MODEL=" + model,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "CLAUDE_CODE_MAX_RETRIES=2",
		"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_BUG_COMMAND=1",
	}
}

// spec is the program with the step's scope around it.
func (q *question) spec(prompt string) (sandbox.Spec, error) {
	program := q.driver.Program
	if program == "" {
		found, err := exec.LookPath("claude")
		if err != nil {
			return sandbox.Spec{}, fmt.Errorf("there is no claude program: %w", err)
		}
		program = found
	}
	program, err := filepath.Abs(program)
	if err != nil {
		return sandbox.Spec{}, err
	}
	if q.Workdir, err = filepath.EvalSymlinks(q.Workdir); err != nil {
		return sandbox.Spec{}, fmt.Errorf("the working directory: %w", err)
	}
	env, err := q.environment()
	if err != nil {
		return sandbox.Spec{}, err
	}
	s := sandbox.Spec{
		Read: packageOf(program),
		Argv: append([]string{program}, q.arguments()...),
		Env:  append(env, settings(q.Model)...),
		Scope: sandbox.Scope{
			Root: q.Workdir, Read: q.Scope.CanRead, Write: q.Scope.CanWrite, Run: q.Scope.CanRun, Hosts: q.Scope.CanReach,
		},
		Deny:   q.driver.Deny,
		Stdin:  strings.NewReader(prompt),
		Limits: sandbox.Limits{Output: mostOutput},
	}
	if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
		s.Env = append(s.Env, "PATH=/usr/local/bin:/usr/bin:/bin")
	}
	if len(q.Scope.CanRun) > 0 {
		// Its tool for commands is a shell.
		s.Run = []string{"/bin/bash", "/bin/sh"}
		s.Env = append(s.Env, "SHELL=/bin/bash")
	}
	if len(q.Scope.CanReach) > 0 && q.driver.Dial != nil {
		s.Dial = q.driver.Dial(q.Scope.CanReach)
		s.Env = append(s.Env, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	}
	return s, nil
}

// packageOf is the folder of a program that npm has installed: it may be a script
// that reads what lies beside it. A program that is one file needs none.
func packageOf(program string) []string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil // the sandbox will say so
	}
	before, after, ok := strings.Cut(real, "/node_modules/@anthropic-ai/")
	if !ok {
		return nil
	}
	name, _, _ := strings.Cut(after, "/")
	return []string{before + "/node_modules/@anthropic-ai/" + name}
}

// tools are those that the scope gives the program. With --bare there are no
// others.
func (q *question) tools() []string {
	var tools []string
	if len(q.Scope.CanRead) > 0 || len(q.Scope.CanWrite) > 0 {
		tools = append(tools, "Read")
	}
	if len(q.Scope.CanWrite) > 0 {
		tools = append(tools, "Edit")
	}
	if len(q.Scope.CanRun) > 0 {
		tools = append(tools, "Bash")
	}
	return tools
}

// leave are the uses of tools that the program need not ask for. The kernel is
// what holds it; this makes an attempt to do more a denial that it tells of.
func (q *question) leave() []string {
	var rules []string
	add := func(tool string, patterns []string) {
		for _, pattern := range patterns {
			if !strings.ContainsAny(pattern, "(),") {
				rules = append(rules, fmt.Sprintf("%s(/%s)", tool, filepath.Join(q.Workdir, pattern)))
			}
		}
	}
	add("Read", slices.Concat(q.Scope.CanRead, q.Scope.CanWrite))
	add("Edit", q.Scope.CanWrite)
	if len(q.Scope.CanRun) > 0 {
		rules = append(rules, "Bash")
	}
	return rules
}

// arguments are those of 2.1.332; TestRealClaude tries them.
func (q *question) arguments() []string {
	args := []string{
		"--print", "--output-format", "stream-json", "--verbose",
		"--model", q.Model,
		"--bare", "--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands", "--no-chrome", "--no-session-persistence",
		"--permission-mode", permissionMode, "--permission-prompts", "none",
		"--tools", strings.Join(q.tools(), ","),
		"--json-schema", string(q.Schema),
	}
	if rules := q.leave(); len(rules) > 0 {
		args = append(append(args, "--allowedTools"), rules...)
	}
	return args
}

// running is the program while it runs. It takes what the program writes.
type running struct {
	*question
	gate   *gate
	prompt string

	started chan struct{} // closed when process is there
	process *sandbox.Process

	mu      sync.Mutex
	line    []byte
	events  []Event
	garbled string
	beaten  time.Time // when something last came
	idle    bool
}

// run starts the program, watches it and reads what came of it.
func (r *running) run(ctx context.Context, s sandbox.Spec) Reading {
	r.beat()
	p, err := sandbox.Start(ctx, s)
	if err != nil {
		if o := over(ctx); o != nil {
			return *o
		}
		var refused *sandbox.RefusedError
		if errors.As(err, &refused) {
			return *failed("%v", refused)
		}
		return *failed("start claude: %v", err)
	}
	r.process = p
	close(r.started)
	r.watch(p)
	result := p.Wait()
	if o := over(ctx); o != nil && result.End == sandbox.Cancelled {
		r.note()
		return *o
	}
	return r.read(result)
}

// kill ends the program, as soon as there is one.
func (r *running) kill() {
	<-r.started
	r.process.Kill()
}

// beat notes that something came of the program.
func (r *running) beat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beaten = time.Now()
}

// watch returns when the program has ended, and ends it when nothing has come of
// it for too long.
func (r *running) watch(p *sandbox.Process) {
	limit := r.driver.Idle
	if limit == 0 {
		limit = standardIdle
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-p.Done():
			return
		case <-timer.C:
		}
		r.mu.Lock()
		left := limit - time.Since(r.beaten)
		r.idle = left <= 0
		r.mu.Unlock()
		if left <= 0 {
			p.Kill()
			<-p.Done()
			return
		}
		timer.Reset(left)
	}
}

// Write takes in what the program writes, line by line.
func (r *running) Write(p []byte) (int, error) {
	r.beat()
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		r.take(append(r.line, p[:i]...))
		r.line, p = r.line[:0], p[i+1:]
	}
	r.line = append(r.line, p...)
	return n, nil
}

// take takes in a line.
func (r *running) take(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	events, err := ParseEvents(line)
	if err != nil {
		if r.garbled == "" {
			r.garbled = string(line[:min(len(line), 200)])
		}
		return
	}
	for _, e := range events {
		r.events = append(r.events, e)
		if m := e.Message; e.Type == "assistant" && m != nil && m.Usage != nil && m.Model != synthetic {
			r.meter.reported(m.ID, *m.Usage)
		}
	}
}

// read reads what came of the program, which has ended.
func (r *running) read(result sandbox.Result) Reading {
	r.take(r.line) // a line that was not ended
	r.note()
	return Read(Evidence{
		Pin: r.Model, Tools: r.tools(), Events: r.events, Garbled: r.garbled, Process: result, Gate: r.gate.saw(),
		MaxTokens: r.MaxTokens, Idle: r.idle, Check: r.checks(),
	})
}

// note keeps who served, for the judgement.
func (r *running) note() {
	if served := r.gate.saw().Served; len(served) > 0 {
		r.question.served = strings.Join(served, ", ")
	}
}
