package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	loop "github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// made is a house in which the model does as a test says.
type made struct {
	answer func(ctx context.Context, c engine.ModelCall, show engine.Show) loop.Event

	mu   sync.Mutex
	runs []string // commands that ran
}

func (m *made) Agent(context.Context, journal.Run) (engine.Agent, error) {
	return engine.Agent{Model: m, Tools: m, Evaluator: m, ProfileDigest: "p"}, nil
}

func (m *made) Task(s chat.Start) (engine.Task, error) {
	return engine.Task{Tenant: s.Tenant, Session: s.Session, Profile: "default", Starter: s.By, Text: s.Task}, nil
}

func (m *made) Messages(c engine.ModelCall, told int) ([]json.RawMessage, error) {
	if told > 0 {
		return nil, nil
	}
	b, err := json.Marshal(map[string]string{"role": "user", "content": c.State.Task})
	return []json.RawMessage{b}, err
}

func (m *made) Ask(ctx context.Context, c engine.ModelCall, show engine.Show) loop.Event {
	return m.answer(ctx, c, show)
}

func (m *made) Call(_ context.Context, c engine.ToolCall) engine.ToolResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs = append(m.runs, c.Args)
	return engine.ToolResult{Text: "made\nof two lines"}
}

func (m *made) Evaluate(context.Context, signal.History) signal.Evaluation {
	return signal.Evaluation{Reports: []signal.Report{
		{Signal: "step_cap", Mode: signal.Shadow, Judgement: signal.Judgement{Result: signal.Halt, Value: 21, Limit: 20}},
	}}
}

// asking is a model that wants to run a command, and then says what came of it.
// Its text would clear a terminal.
func asking(_ context.Context, c engine.ModelCall, show engine.Show) loop.Event {
	if c.Step == 1 {
		show("text", "I will clean up.")
		return loop.ModelAnswered{Answer: loop.Answer{Text: "I will clean up.", Calls: []loop.Call{
			{ID: "a", Tool: "run_command", Args: `{"argv":["make","clean"]}`, Ruling: loop.Gated},
		}}}
	}
	show("text", "It is \x1b[2J")
	show("text", "clean.")
	return loop.ModelAnswered{Answer: loop.Answer{Text: "It is \x1b[2Jclean."}}
}

// denied is a model whose answer a guard stops.
func denied(_ context.Context, _ engine.ModelCall, show engine.Show) loop.Event {
	show("text", "It is ")
	return loop.ModelWithheld{Deny: true, Guard: "pii", Rule: "ssn", Text: "It is "}
}

// scene is a journal, and who works on it.
type scene struct {
	t     *testing.T
	store string
	house *made
}

func newScene(t *testing.T, answer func(context.Context, engine.ModelCall, engine.Show) loop.Event) *scene {
	return &scene{t: t, store: filepath.Join(t.TempDir(), "s.db"), house: &made{answer: answer}}
}

func none() error { return nil }

// said is what came of a command.
type said struct {
	code        int
	out, talk   string
	run, asking string // ids that were named
}

var (
	runID = regexp.MustCompile(`run_[0-9a-z]{26}`)
	aprID = regexp.MustCompile(`apr_[0-9a-z]{26}`)
)

// does carries a command out as the program would. Stdin is typed; a command that
// asks a person believes that one is there.
func (s *scene) does(typed string, command interface{ Run(*world) error }) said {
	s.t.Helper()
	var out, talk bytes.Buffer
	w := &world{
		stdin: strings.NewReader(typed), stdout: &out, voice: voice{&talk},
		getenv: func(name string) string { return map[string]string{"USER": "ann"}[name] },
		house:  func(*world, string, *sqlite.Store) (house, func() error, error) { return s.house, none, nil },
	}
	code := exitDone
	if err := command.Run(w); err != nil {
		code = w.voice.fail(err)
	}
	return said{
		code: code, out: out.String(), talk: talk.String(),
		run: runID.FindString(talk.String()), asking: aprID.FindString(talk.String()),
	}
}

// anonymous replaces what differs from run to run.
func anonymous(s string) string {
	for _, r := range []struct {
		re *regexp.Regexp
		to string
	}{
		{runID, "RUN"}, {aprID, "APR"}, {regexp.MustCompile(`[0-9a-f]{64}`), "DIGEST"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:]+Z`), "TIME"}, {regexp.MustCompile(`(?m)^  \d\d:\d\d:\d\d  `), "  TIME  "},
		{regexp.MustCompile(`taken up by \S+`), "taken up by WORKER"},
	} {
		s = r.re.ReplaceAllString(s, r.to)
	}
	return s
}

func (s *scene) flags() journalFlags { return journalFlags{Store: s.store} }

func (s *scene) wants(what string, want, got string) {
	s.t.Helper()
	if diff := cmp.Diff(want, anonymous(got)); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestChatInAPipe talks without a person: the run waits, somebody decides from
// another process, and a third command goes on.
func TestChatInAPipe(t *testing.T) {
	s := newScene(t, asking)
	first := s.does("clean up\n", &chatCommand{journalFlags: s.flags()})
	s.wants("answer", "I will clean up.\n", first.out)
	s.wants("talk", `stoplog: run RUN, profile default
stoplog: call 1.1 run_command {"argv":["make","clean"]}: held
stoplog: asks for approval APR: run_command {"argv":["make","clean"]}
stoplog: Waiting for approval: run_command {"argv":["make","clean"]}.
stoplog: run RUN is guardrail_approval_required (approval_required)
stoplog: hint: decide with `+"`stoplog approve APR` or `stoplog deny APR`"+`
stoplog: hint: then go on with `+"`stoplog runs resume RUN`"+`
`, first.talk)
	if first.code != exitWaiting {
		t.Errorf("exit code %d", first.code)
	}

	// Without a terminal nobody can be asked: what is shown has its digest beside it.
	shown := s.does("", &approveCommand{decisionFlags: decisionFlags{journalFlags: s.flags(), ID: first.asking}})
	s.wants("shown", `stoplog: APR, of run RUN, asks about step 1, call 1: run_command
    {
      "args": {
        "argv": [
          "make",
          "clean"
        ]
      },
      "call": 1,
      "profile_digest": "p",
      "run": "RUN",
      "step": 1,
      "tool": "run_command",
      "v": 1,
      "workdir": ""
    }
stoplog: digest DIGEST
stoplog: without a decision it is denied at TIME
stoplog: APR was not decided: there is no terminal to ask at
`, shown.talk[:strings.Index(shown.talk, "stoplog: hint:")])
	if shown.code != exitWaiting {
		t.Errorf("exit code %d", shown.code)
	}
	digest := regexp.MustCompile(`digest ([0-9a-f]{64})`).FindStringSubmatch(shown.talk)[1]

	decide := func(digest string) said {
		return s.does("", &approveCommand{decisionFlags: decisionFlags{journalFlags: s.flags(), ID: first.asking, Digest: digest, By: "bob"}})
	}
	if got := decide(strings.Repeat("0", 64)); got.code != exitError || !strings.Contains(got.talk, "not about what was asked") {
		t.Errorf("another digest: %+v", got)
	}
	if got := decide(digest[:8]); got.code != exitUsage {
		t.Errorf("a short digest: %+v", got)
	}
	if got := decide(digest); got.code != exitDone || !strings.Contains(got.talk, "stoplog runs resume "+first.run) {
		t.Errorf("approve: %+v", got)
	}
	if got := decide(digest); got.code != exitError || !strings.Contains(got.talk, "already approved by bob at ") {
		t.Errorf("approve again: %+v", got)
	}
	if len(s.house.runs) != 0 {
		t.Errorf("it ran before anybody went on: %q", s.house.runs)
	}

	second := s.does("", &runsResumeCommand{runFlags: runFlags{s.flags(), first.run}})
	s.wants("answer", "It is \x1b[2Jclean.\n", second.out) // a pipe gets what was said
	if second.code != exitDone || len(s.house.runs) != 1 {
		t.Errorf("%+v, ran %q", second, s.house.runs)
	}
	s.afterwards(first.run)
}

// afterwards looks at what is left of the run of TestChatInAPipe.
func (s *scene) afterwards(id string) {
	s.t.Helper()
	why := s.does("", &whyCommand{runFlags: runFlags{s.flags(), id[:12]}})
	s.wants("why", `RUN is completed (completed), profile default
  TIME  asked: clean up\n
  TIME  taken up by WORKER
step 1
  TIME  the model is asked (attempt 1)
  TIME  the model answered: I will clean up.; call 1: run_command {"argv":["make","clean"]}, gated
  TIME  APR asks about the call 1 (run_command {"argv":["make","clean"]}), until TIME
  TIME  pause 1 was evaluated: ok
            step_cap: would_halt, in shadow; 21 of 20
  TIME  APR approved by bob
  TIME  taken up by WORKER
  TIME  call 1 (run_command) started
  TIME  call 1 (run_command) returned: made\nof two lines
  TIME  the step was evaluated: ok
            step_cap: would_halt, in shadow; 21 of 20
step 2
  TIME  the model is asked (attempt 1)
  TIME  the model answered: It is \x1b[2Jclean.
  TIME  the step was evaluated: ok
            step_cap: would_halt, in shadow; 21 of 20
  TIME  ended: completed (completed)
`, why.out)
	show := s.does("", &runsShowCommand{runFlags: runFlags{s.flags(), id}})
	_, story, _ := strings.Cut(show.out, "\n\n")
	s.wants("show", `- run RUN, profile default
- step 1
I will clean up.
- call 1.1 run_command {"argv":["make","clean"]}: held
- asks for approval APR: run_command {"argv":["make","clean"]}
- Waiting for approval: run_command {"argv":["make","clean"]}.
- call 1.1 run_command: due
- call 1.1 run_command: running
- call 1.1 run_command: done: made …
- step 2
It is \x1b[2Jclean.
`, story)
	list := s.does("", &runsListCommand{journalFlags: s.flags(), Limit: 20})
	s.wants("list", "RUN  turn  completed  completed  default  TIME\n", list.out)

	verify := s.does("", &auditVerifyCommand{auditFlags: auditFlags{journalFlags: s.flags()}})
	head := regexp.MustCompile(`[0-9a-f]{64}`).FindString(verify.out)
	if verify.code != exitDone || !strings.Contains(verify.out, "  whole  ") {
		s.t.Errorf("audit verify: %+v", verify)
	}
	expect := func(link string) said {
		return s.does("", &auditVerifyCommand{auditFlags: auditFlags{journalFlags: s.flags(), Runs: []string{id}}, Expect: link})
	}
	if got := expect(head); got.code != exitDone {
		s.t.Errorf("audit verify --expect: %+v", got)
	}
	if got := expect(strings.Repeat("0", 63) + "1"); got.code != exitError || !strings.Contains(got.out, "broken") {
		s.t.Errorf("audit verify --expect another: %+v", got)
	}
	export := s.does("", &auditExportCommand{auditFlags{journalFlags: s.flags()}})
	if got := strings.Count(export.out, "\n{\"event\":"); got < 15 || !strings.Contains(export.out, `"link":"`+head+`"`) {
		s.t.Errorf("audit export: %d events, and the head %s:\n%s", got, head, export.out)
	}
	if got := s.does("", &runsCancelCommand{runFlags: runFlags{s.flags(), id}}); got.code != exitError || !strings.Contains(got.talk, "is completed") {
		s.t.Errorf("cancel what has ended: %+v", got)
	}
}

// TestChatBlocked: text that was shown stays, the message follows it, exit 3. As
// JSON it is the same.
func TestChatBlocked(t *testing.T) {
	s := newScene(t, denied)
	const message = "Stopped: guard pii denied the answer (rule ssn). What ran: 0 tool calls. Nothing further will run."
	got := s.does("", &chatCommand{journalFlags: s.flags(), Message: "tell me"})
	s.wants("answer", "It is \n"+message+"\n", got.out)
	if got.code != exitBlocked || !strings.Contains(got.talk, "stoplog why "+got.run) {
		t.Errorf("%+v", got)
	}
	got = s.does("", &chatCommand{journalFlags: s.flags(), Message: "tell me", JSON: true})
	var last struct {
		ID, Event string
		Data      chat.Done
	}
	for line := range strings.Lines(got.out) {
		if err := json.Unmarshal([]byte(line), &last); err != nil && last.Event == "done" {
			t.Fatal(err)
		}
	}
	if last.Event != "done" || last.Data.Message != message || last.Data.Status != chat.StatusBlocked || last.ID == "" || got.code != exitBlocked {
		t.Errorf("%+v: %+v", last, got)
	}
}

// person types at a terminal: a talk that asks, on a server of its own.
func (s *scene) converses(typed string) said {
	s.t.Helper()
	return s.does(typed, conversation{s})
}

type conversation struct{ s *scene }

func (c conversation) Run(w *world) error {
	server, hangUp, err := reach(context.Background(), w, c.s.flags(), "")
	if err != nil {
		return err
	}
	defer hangUp()
	t := &talk{w: w, server: server, by: "ann", ask: true, narrator: narrator{w: w, tame: true}}
	return t.converse(context.Background())
}

// TestConversation answers in place, at a terminal: no, then yes, then nothing.
func TestConversation(t *testing.T) {
	s := newScene(t, asking)
	got := s.converses("clean up\nn not now\nagain\ny\nand again\n\n")
	s.wants("answers", `I will clean up.
It is \x1b[2Jclean.
I will clean up.
It is \x1b[2Jclean.
I will clean up.
`, got.out)
	if got.code != exitWaiting || len(s.house.runs) != 1 {
		t.Errorf("exit code %d, ran %q\n%s", got.code, s.house.runs, got.talk)
	}
	for _, want := range []string{"call 1.1 run_command: not run: denied by ann: not now\n", "call 1.1 run_command: done: made …\n", "stoplog: digest ", "approve it? "} {
		if !strings.Contains(got.talk, want) {
			t.Errorf("the talk has no %q:\n%s", want, got.talk)
		}
	}
	// The three turns are of one conversation.
	list := s.does("", &runsListCommand{journalFlags: s.flags(), Limit: 20, JSON: true})
	sessions := map[string]bool{}
	for line := range strings.Lines(list.out) {
		var r struct{ Session string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		sessions[r.Session] = true
	}
	if len(sessions) != 1 || strings.Count(list.out, "\n") != 3 {
		t.Errorf("sessions %v:\n%s", sessions, list.out)
	}
}

// onText does something when a text is written.
type onText struct {
	io.Writer
	text string
	do   func()
}

func (o *onText) Write(p []byte) (int, error) {
	if o.do != nil && strings.Contains(string(p), o.text) {
		o.do()
		o.do = nil
	}
	return o.Writer.Write(p)
}

// TestInterrupt ends a run by SIGINT: what it had said stays, and it says why it
// stopped.
func TestInterrupt(t *testing.T) {
	s := newScene(t, func(ctx context.Context, _ engine.ModelCall, show engine.Show) loop.Event {
		show("text", "Let me think.")
		<-ctx.Done()
		return nil
	})
	var out, talk bytes.Buffer
	interrupt := func() {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}
	w := &world{
		stdin: strings.NewReader(""), stdout: &onText{&out, "think", interrupt}, voice: voice{&talk},
		getenv: func(string) string { return "ann" },
		house:  func(*world, string, *sqlite.Store) (house, func() error, error) { return s.house, none, nil },
	}
	err := (&chatCommand{journalFlags: s.flags(), Message: "ponder"}).Run(w)
	s.wants("answer", "Let me think.\nStopped: ann cancelled the run. What ran: 0 tool calls. Nothing further will run.\n", out.String())
	if code := w.voice.fail(err); code != exitError || !strings.Contains(talk.String(), "is cancelled (cancelled)") {
		t.Errorf("exit code %d:\n%s", code, talk.String())
	}
}

// TestOneHost: while one server has the journal in hand, others become its clients.
func TestOneHost(t *testing.T) {
	s := newScene(t, asking)
	open := func(*sqlite.Store) (house, func() error, error) { return s.house, none, nil }
	h, err := openHost(t.Context(), s.store, nil, false, open)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openHost(t.Context(), s.store, nil, false, open); !errors.Is(err, errTaken) {
		t.Errorf("a second host: %v", err)
	}
	first := s.does("", &chatCommand{journalFlags: s.flags(), Message: "clean up"})
	digest := func() string {
		a, ok := dialServer(t.Context(), s.store)
		if !ok {
			t.Fatal("no server")
		}
		defer a.hangUp()
		q, err := a.Approval(t.Context(), first.asking)
		if err != nil {
			t.Fatal(err)
		}
		return q.Digest
	}()
	got := s.does("", &denyCommand{decisionFlags: decisionFlags{journalFlags: s.flags(), ID: first.asking, Digest: digest}, Reason: "no"})
	if got.code != exitDone || got.talk != "" {
		t.Errorf("deny, with a server: %+v", got)
	}
	rest := s.does("", &runsResumeCommand{runFlags: runFlags{s.flags(), first.run}})
	if rest.code != exitDone || len(s.house.runs) != 0 {
		t.Errorf("%+v", rest)
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
	h, err = openHost(t.Context(), s.store, nil, false, open) // the socket that is left is in nobody's way
	if err != nil {
		t.Fatal(err)
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
}

// TestCommandsWithout a journal, or a run in it, say so.
func TestCommandsWithout(t *testing.T) {
	s := newScene(t, asking)
	for name, command := range map[string]interface{ Run(*world) error }{
		"list": &runsListCommand{journalFlags: s.flags(), Limit: 1}, "why": &whyCommand{runFlags: runFlags{s.flags(), "run_1"}},
		"verify": &auditVerifyCommand{auditFlags: auditFlags{journalFlags: s.flags()}},
	} {
		if got := s.does("", command); got.code != exitError || !strings.Contains(got.talk, "nothing has run yet") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	s.does("", &chatCommand{journalFlags: s.flags(), Message: "clean up"})
	for name, tt := range map[string]struct {
		command interface{ Run(*world) error }
		code    int
		want    string
	}{
		"no such run":      {&whyCommand{runFlags: runFlags{s.flags(), "run_7"}}, exitError, "not found"},
		"no run's id":      {&whyCommand{runFlags: runFlags{s.flags(), "ses_7"}}, exitUsage, "is not an id run_"},
		"no expectation":   {&auditVerifyCommand{auditFlags: auditFlags{journalFlags: s.flags()}, Expect: strings.Repeat("0", 64)}, exitUsage, "name it"},
		"empty message":    {&chatCommand{journalFlags: s.flags()}, exitUsage, "message"},
		"no session":       {&chatCommand{journalFlags: s.flags(), Message: "x", Session: "ses_7"}, exitError, "not found"},
		"nothing in doubt": {&runsResumeCommand{runFlags: runFlags{s.flags(), "run_0"}, Retry: true}, exitError, ""},
	} {
		if got := s.does("", tt.command); got.code != tt.code || !strings.Contains(got.talk, tt.want) || got.out != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
