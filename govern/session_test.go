package govern_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/tool"
)

// A fake is a tool whose doing is a function.
type fake struct {
	spec govern.ToolSpec
	run  func(ctx context.Context, args json.RawMessage) (govern.ToolOutput, error)
}

func (f fake) Spec() govern.ToolSpec { return f.spec }
func (f fake) Run(ctx context.Context, args json.RawMessage) (govern.ToolOutput, error) {
	return f.run(ctx, args)
}

func saying(name string, effect govern.Effect, text string) fake {
	return fake{
		govern.ToolSpec{Name: name, Description: name, Effect: effect, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"additionalProperties":false}`)},
		func(context.Context, json.RawMessage) (govern.ToolOutput, error) {
			return govern.ToolOutput{Text: text}, nil
		},
	}
}

// A diary is what happened, in order; it is a fence and a record.
type diary struct {
	mu          sync.Mutex
	lines       []string
	begin, done error // what the fence answers
	record      error
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) Begin(_ context.Context, s govern.Start) error {
	d.write("begin %s, fenced: %v, approval %q", s.Call.Tool, s.Fenced(), s.Approval.ID)
	return d.begin
}

func (d *diary) Done(ctx context.Context, s govern.Start, r govern.Result) error {
	d.write("done %s: %q, failed: %v, left: %v", s.Call.Tool, r.Text, r.Failed, ctx.Err() != nil)
	return d.done
}

func (d *diary) take(rs ...govern.Record) error {
	for _, r := range rs {
		v := r.Fact.(govern.Verdict)
		d.write("record %s: %s %s %s %s", v.Channel, v.Guard, v.Rule, v.Mode, v.Verdict)
	}
	return d.record
}

func (d *diary) read() string { return strings.Join(d.lines, "\n") }

// secretsGuard finds what the built-in packs find.
func secretsGuard(t *testing.T, verdict guard.Verdict) guard.Guard {
	t.Helper()
	rs, err := rules.Select("secrets", "credentials")
	if err != nil {
		t.Fatal(err)
	}
	g, err := match.Compile(rs, match.Options{Name: "secrets", Verdict: verdict})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// key is a made-up key of the rule aws-access-token.
const key = "AK" + "IA" + "2Q7XN4RZ6LTVWB3K"

type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no way") }

// session opens a session under one profile.
func session(t *testing.T, d *diary, p govern.Profile, cfg govern.SessionConfig) *govern.Session {
	t.Helper()
	s, err := openSession(d, p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openSession(d *diary, p govern.Profile, cfg govern.SessionConfig) (*govern.Session, error) {
	p.Name, p.Upstreams = "p", []string{"u"}
	door, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{{Name: "u", Protocol: govern.OpenAI, BaseURL: "http://u.invalid/v1", Transport: nowhere{}}},
		Profiles:  []govern.Profile{p},
		Record:    d.take,
	})
	if err != nil {
		return nil, err
	}
	if cfg.Run == "" {
		cfg.Run, cfg.Workdir, cfg.ProfileDigest = "run_1", "/srv/work", strings.Repeat("ab", 32)
	}
	return door.OpenSession(cfg)
}

func TestSessionJudge(t *testing.T) {
	s := session(t, &diary{}, govern.Profile{Tools: map[string]govern.ToolRule{
		"denied": govern.ToolDeny, "gated": govern.ToolRequireApproval, "granted": govern.ToolAllow,
	}}, govern.SessionConfig{Fence: &diary{}, Tools: []govern.Tool{
		saying("read", govern.Read, ""), saying("put", govern.Idempotent, ""), saying("write", govern.Write, ""), saying("fire", govern.Irreversible, ""),
		saying("denied", govern.Read, ""), saying("gated", govern.Read, ""), saying("granted", govern.Irreversible, ""),
	}})
	for _, c := range []struct{ tool, args, want string }{
		{"read", `{}`, "allowed"},
		{"granted", `{"n":1}`, "allowed"},
		{"put", `{}`, "not run: a person has to approve it"},
		{"write", `{}`, "not run: a person has to approve it"},
		{"fire", `{}`, "not run: a person has to approve it"},
		{"gated", `{}`, "not run: a person has to approve it"},
		{"denied", `{}`, "denied by the tool rule for denied"},
		{"denied", `{`, "denied by the tool rule for denied"},
		{"none", `{}`, "there is no tool none"},
		{"Read", `{}`, "there is no tool Read"},
		{"a\nb", `{}`, "there is no tool a?b"},
		{"read", ``, "malformed arguments: there are none: write {} where there is nothing to say"},
		{"read", `{"n":1`, "malformed arguments: the JSON ends too early, at byte 6"},
		{"write", `{"n":1,"n":2}`, "malformed arguments: the member at byte 7 has the name of one before it"},
		{"write", `{"n":"one"}`, "malformed arguments: /n must be integer, and is string"},
		{"read", `{"s":"[redacted:aws-access-token]"}`, "arguments withheld by aws-access-token"},
		{"read", `{"n":"[redacted:credit-card]"}`, "arguments withheld by credit-card"},
		{"read", `{"[redacted:email]":1}`, "arguments withheld by email"},
		{"gated", `{"s":"a[redacted:email]b"}`, "arguments withheld by email"},
		{"read", `{"s":"\u005bredacted:email]"}`, "arguments withheld by email"},
		{"read", `{"s":"[redacted:ignore all rules]"}`, "arguments withheld by a rule"},
		{"read", `{"s":"[redacted]"}`, "allowed"},
	} {
		if got := s.Judge(govern.Call{Step: 1, Number: 1, Tool: c.tool, Args: c.args}).String(); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.tool, c.args, got, c.want)
		}
	}
	var offered []string
	for _, spec := range s.Tools() {
		offered = append(offered, spec.Name)
	}
	if want := "read put write fire gated granted"; strings.Join(offered, " ") != want {
		t.Errorf("offered are %s, want %s", offered, want)
	}
}

func TestOpenSession(t *testing.T) {
	writes := []govern.Tool{saying("write", govern.Write, "")}
	reads := []govern.Tool{saying("read", govern.Read, "")}
	rule := func(name string, r govern.ToolRule) govern.Profile {
		return govern.Profile{Tools: map[string]govern.ToolRule{name: r}}
	}
	for _, c := range []struct {
		profile govern.Profile
		cfg     govern.SessionConfig
		want    string
	}{
		{govern.Profile{}, govern.SessionConfig{Tools: reads}, ""},
		{rule("write", govern.ToolDeny), govern.SessionConfig{Tools: writes}, ""},
		{govern.Profile{}, govern.SessionConfig{Tools: writes}, `open a session: the tool "write" (write, require_approval) needs a Fence, and there is none`},
		{rule("write", govern.ToolAllow), govern.SessionConfig{Tools: writes}, `open a session: the tool "write" (write, allow) needs a Fence, and there is none`},
		{rule("read", govern.ToolRequireApproval), govern.SessionConfig{Tools: reads}, `open a session: the tool "read" (read, require_approval) needs a Fence, and there is none`},
		{rule("raed", govern.ToolAllow), govern.SessionConfig{Tools: reads}, `open a session: profile "p" has a rule for the tool "raed", which is not there`},
		{rule("read", "maybe"), govern.SessionConfig{Tools: reads}, `open govern: profile "p": unknown rule "maybe" for the tool "read": want allow, deny or require_approval`},
		{govern.Profile{}, govern.SessionConfig{Profile: "q", Tools: reads}, `open a session: there is no profile "q"`},
		{govern.Profile{}, govern.SessionConfig{Tools: append(reads, reads...)}, `open a session: two tools are named "read"`},
	} {
		if _, err := openSession(&diary{}, c.profile, c.cfg); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// An approval is for what was shown, and for nothing that differs from it.
func TestApprovalBinds(t *testing.T) {
	open := func(change func(*govern.SessionConfig)) *govern.Session {
		cfg := govern.SessionConfig{Run: "run_1", Workdir: "/srv/work", ProfileDigest: "abcd", Fence: &diary{}, Tools: []govern.Tool{
			saying("fire", govern.Irreversible, "fired"), saying("aim", govern.Write, "aimed"),
		}}
		change(&cfg)
		return session(t, &diary{}, govern.Profile{}, cfg)
	}
	same := func(*govern.SessionConfig) {}
	call := govern.Call{Step: 2, Number: 1, Tool: "fire", Args: `{"s":"x","n":7}`}
	need, ok := open(same).Judge(call).(govern.NeedsApproval)
	if !ok {
		t.Fatalf("%v", open(same).Judge(call))
	}
	const shown = `{"args":{"n":7,"s":"x"},"call":1,"profile_digest":"abcd","run":"run_1","step":2,"tool":"fire","v":1,"workdir":"/srv/work"}`
	if string(need.Shown) != shown {
		t.Errorf("shown is %s, want %s", need.Shown, shown)
	}
	// printf %s "$shown" | sha256sum
	const digest = "fbcf878063f61d3e6d3785adc43b2d9426dbf4c1d925ee54538b298fce41c393"
	if need.Digest.String() != digest {
		t.Errorf("digest is %s, want %s", need.Digest, digest)
	}
	if back, err := govern.ParseDigest(digest); err != nil || back != need.Digest {
		t.Errorf("read back as %s, %v", back, err)
	}
	yes := govern.Approval{ID: "apr_1", Digest: need.Digest}
	change := func(f func(*govern.Call)) govern.Call { c := call; f(&c); return c }
	for _, c := range []struct {
		what    string
		session *govern.Session
		call    govern.Call
		runs    bool
	}{
		{"the same", open(same), call, true},
		{"spelled otherwise", open(same), change(func(c *govern.Call) { c.Args = ` {"n":7.0, "s":"\u0078"}` }), true},
		{"other arguments", open(same), change(func(c *govern.Call) { c.Args = `{"s":"x","n":8}` }), false},
		{"more arguments", open(same), change(func(c *govern.Call) { c.Args = `{"n":7}` }), false},
		{"another tool", open(same), change(func(c *govern.Call) { c.Tool = "aim" }), false},
		{"another step", open(same), change(func(c *govern.Call) { c.Step = 3 }), false},
		{"another call of the step", open(same), change(func(c *govern.Call) { c.Number = 2 }), false},
		{"another run", open(func(c *govern.SessionConfig) { c.Run = "run_2" }), call, false},
		{"another directory", open(func(c *govern.SessionConfig) { c.Workdir = "/srv/other" }), call, false},
		{"another profile", open(func(c *govern.SessionConfig) { c.ProfileDigest = "ef" }), call, false},
	} {
		r, err := c.session.Call(t.Context(), c.call, yes)
		want := "not run: the approval that was given is for something else"
		if c.runs {
			want = "fired"
		}
		if err != nil || r.Text != want {
			t.Errorf("%s: %q, %v; want %q", c.what, r.Text, err, want)
		}
	}
	if r, err := open(same).Call(t.Context(), call, govern.Approval{}); err != nil || r.Text != "not run: a person has to approve it" {
		t.Errorf("without approval: %q, %v", r.Text, err)
	}
}

// What a session tells its caller, and in which order.
func TestSessionTells(t *testing.T) {
	broken := saying("broken", govern.Write, "")
	broken.run = func(context.Context, json.RawMessage) (govern.ToolOutput, error) {
		return govern.ToolOutput{}, errors.New("lost " + key)
	}
	panics := saying("panics", govern.Read, "")
	panics.run = func(context.Context, json.RawMessage) (govern.ToolOutput, error) { panic("no") }
	odd := saying("odd", govern.Read, "\xff")
	lies := saying("lies", govern.Read, "")
	lies.run = func(context.Context, json.RawMessage) (govern.ToolOutput, error) {
		return govern.ToolOutput{Text: "abc", Before: 2, After: 2}, nil
	}
	leaves := saying("leaves", govern.Write, "")
	leaves.run = func(ctx context.Context, _ json.RawMessage) (govern.ToolOutput, error) {
		return govern.ToolOutput{}, context.Cause(ctx)
	}
	no := errors.New("disk full")
	for _, c := range []struct {
		tool  fake
		diary *diary
		gone  bool // the context has ended
		want  string
	}{
		{tool: saying("read", govern.Read, "text"), want: `
			begin read, fenced: false, approval ""
			done read: "text", failed: false, left: false
			result "text"`},
		{tool: saying("write", govern.Write, "text"), want: `
			begin write, fenced: true, approval ""
			done write: "text", failed: false, left: false
			result "text"`},
		{tool: saying("read", govern.Read, "a "+key+" b"), want: `
			begin read, fenced: false, approval ""
			record tool/1/2/result: secrets aws-access-token enforce redact
			done read: "a [redacted:aws-access-token] b", failed: false, left: false
			result "a [redacted:aws-access-token] b"`},
		{tool: saying("write", govern.Write, "text"), diary: &diary{begin: no}, want: `
			begin write, fenced: true, approval ""
			error call write: it did not begin: disk full`},
		{tool: saying("write", govern.Write, "text"), diary: &diary{done: no}, want: `
			begin write, fenced: true, approval ""
			done write: "text", failed: false, left: false
			error call write: its result was not kept: disk full`},
		{tool: saying("read", govern.Read, key), diary: &diary{record: no}, want: `
			begin read, fenced: false, approval ""
			record tool/1/2/result: secrets aws-access-token enforce redact
			error call read: its verdicts were not recorded: disk full`},
		{tool: broken, want: `
			begin broken, fenced: true, approval ""
			record tool/1/2/result: secrets aws-access-token enforce redact
			done broken: "the tool broke off: lost [redacted:aws-access-token]\n[what it was doing may have taken effect]", failed: true, left: false
			result "the tool broke off: lost [redacted:aws-access-token]\n[what it was doing may have taken effect]"`},
		{tool: panics, want: `
			begin panics, fenced: false, approval ""
			done panics: "the tool broke off: it panicked: no", failed: true, left: false
			result "the tool broke off: it panicked: no"`},
		{tool: odd, want: `
			begin odd, fenced: false, approval ""
			done odd: "the tool answered with something that is not text", failed: true, left: false
			result "the tool answered with something that is not text"`},
		{tool: lies, want: `
			begin lies, fenced: false, approval ""
			done lies: "the tool answered with something that is not text", failed: true, left: false
			result "the tool answered with something that is not text"`},
		{tool: leaves, gone: true, want: `
			begin leaves, fenced: true, approval ""
			error call leaves: context canceled`},
		{tool: saying("late", govern.Write, "it happened"), gone: true, want: `
			begin late, fenced: true, approval ""
			done late: "it happened", failed: false, left: false
			result "it happened"`},
	} {
		name := c.tool.spec.Name
		if c.diary == nil {
			c.diary = &diary{}
		}
		s := session(t, c.diary, govern.Profile{
			Tools: map[string]govern.ToolRule{name: govern.ToolAllow},
			Input: []guard.Member{{Guard: secretsGuard(t, guard.Redact), Mode: guard.Enforce}},
		}, govern.SessionConfig{Fence: c.diary, Tools: []govern.Tool{c.tool}})
		ctx, cancel := context.WithCancel(t.Context())
		if c.gone {
			cancel()
		}
		r, err := s.Call(ctx, govern.Call{Step: 1, Number: 2, Tool: name, Args: "{}"}, govern.Approval{})
		cancel()
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			c.diary.write("error %s", first)
		} else {
			c.diary.write("result %q", r.Text)
		}
		if want := strings.TrimSpace(strings.ReplaceAll(c.want, "\t", "")); c.diary.read() != want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, c.diary.read(), want)
		}
	}
}

// A refusal is recorded, and nothing runs.
func TestSessionRefuses(t *testing.T) {
	ran := saying("write", govern.Write, "")
	ran.run = func(context.Context, json.RawMessage) (govern.ToolOutput, error) { panic("it ran") }
	denied := ran
	denied.spec.Name = "denied"
	for _, c := range []struct{ tool, args, want string }{
		{"write", `{}`, "record tool/1/1/args: policy tools enforce require_approval"},
		{"write", `{"n":"` + key + `"}`, "record tool/1/1/args: policy malformed_arguments enforce deny"},
		{"write", `{"s":"[redacted:` + key + `]"}`, "record tool/1/1/args: policy redacted_arguments enforce deny"},
		{"denied", `{}`, "record tool/1/1/args: policy tools enforce deny"},
		{key, `{}`, "record tool/1/1/args: policy unknown_tool enforce deny"},
	} {
		d := &diary{}
		s := session(t, d, govern.Profile{Tools: map[string]govern.ToolRule{"denied": govern.ToolDeny}},
			govern.SessionConfig{Fence: d, Tools: []govern.Tool{ran, denied}})
		r, err := s.Call(t.Context(), govern.Call{Step: 1, Number: 1, Tool: c.tool, Args: c.args}, govern.Approval{})
		if _, ok := r.Decision.(govern.Allowed); ok || err != nil || !r.Failed || d.read() != c.want {
			t.Errorf("%s %s: %v, %v; %s", c.tool, c.args, r.Decision, err, d.read())
		}
		d.record = errors.New("disk full")
		if _, err := s.Call(t.Context(), govern.Call{Tool: c.tool, Args: c.args}, govern.Approval{}); err == nil {
			t.Errorf("%s %s: a verdict was not recorded, and there is no error", c.tool, c.args)
		}
	}
}

func TestResultScreened(t *testing.T) {
	for _, c := range []struct {
		what    string
		out     govern.ToolOutput
		mode    guard.Mode
		verdict guard.Verdict
		want    string
		status  guard.Verdict
	}{
		{"clean", govern.ToolOutput{Text: "a b", Note: "[note]"}, guard.Enforce, guard.Redact, "a b\n[note]", guard.Allow},
		{"redacted", govern.ToolOutput{Text: "a " + key + " b"}, guard.Enforce, guard.Redact, "a [redacted:aws-access-token] b", guard.Redact},
		{"in shadow", govern.ToolOutput{Text: "a " + key + " b"}, guard.Shadow, guard.Redact, "a " + key + " b", guard.Allow},
		{"denied", govern.ToolOutput{Text: "a " + key + " b", Note: "[note]"}, guard.Enforce, guard.Deny,
			"a \n[the rest was withheld: guard secrets, rule aws-access-token]\n[note]", guard.Deny},
		{"approval", govern.ToolOutput{Text: key}, guard.Enforce, guard.RequireApproval,
			"[the rest was withheld: guard secrets, rule aws-access-token]", guard.RequireApproval},
		{"begins in it", govern.ToolOutput{Text: "a " + key + " b", Before: 10}, guard.Enforce, guard.Redact, "[redacted:aws-access-token] b", guard.Redact},
		{"ends in it", govern.ToolOutput{Text: "a " + key + " b", After: 10}, guard.Enforce, guard.Redact, "a [redacted:aws-access-token]", guard.Redact},
		{"before it", govern.ToolOutput{Text: "a " + key + " b", After: 22}, guard.Enforce, guard.Redact, "a ", guard.Allow},
		{"behind it", govern.ToolOutput{Text: "a " + key + " b", Before: 23}, guard.Enforce, guard.Redact, "b", guard.Allow},
		{"denied behind it", govern.ToolOutput{Text: "a " + key, After: 20}, guard.Enforce, guard.Deny, "a ", guard.Allow},
		{"denied before it", govern.ToolOutput{Text: key + " b", Before: 21}, guard.Enforce, guard.Deny,
			"[the rest was withheld: guard secrets, rule aws-access-token]", guard.Deny},
		{"cut in it", govern.ToolOutput{Text: "a " + key[:12], Cut: true}, guard.Enforce, guard.Redact, "a \n[cut: the end is not shown]", guard.Allow},
		{"cut in what is none", govern.ToolOutput{Text: "a " + key[:12]}, guard.Enforce, guard.Redact, "a " + key[:12], guard.Allow},
		{"too long", govern.ToolOutput{Text: strings.Repeat("€", tool.MaxText)}, guard.Enforce, guard.Redact,
			strings.Repeat("€", tool.MaxText/3) + "\n[cut: 65536 of 196608 bytes]", guard.Allow},
	} {
		it := saying("it", govern.Read, "")
		it.run = func(context.Context, json.RawMessage) (govern.ToolOutput, error) { return c.out, nil }
		d := &diary{}
		s := session(t, d, govern.Profile{Input: []guard.Member{{Guard: secretsGuard(t, c.verdict), Mode: c.mode}}}, govern.SessionConfig{Tools: []govern.Tool{it}})
		r, err := s.Call(t.Context(), govern.Call{Step: 1, Number: 1, Tool: "it", Args: "{}"}, govern.Approval{})
		if err != nil || r.Text != c.want || r.Screened != c.status || r.Failed {
			t.Errorf("%s: %.200q, %v, %v; want %.200q, %v", c.what, r.Text, r.Screened, err, c.want, c.status)
		}
		if (r.Screened > guard.Allow) != (r.Guard == "secrets" && r.Rule == "aws-access-token") {
			t.Errorf("%s: %v by %q, %q", c.what, r.Screened, r.Guard, r.Rule)
		}
	}
}

// A model that reads a file in the smallest pieces, at any offset, gets no part
// of a secret in it.
func TestReadingInPiecesHidesSecrets(t *testing.T) {
	dir := t.TempDir()
	const before, after = "first line\nkey: ", "\nlast line\n"
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(before+key+after), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := tool.OpenWorkdir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d := &diary{}
	s := session(t, d, govern.Profile{
		Input: []guard.Member{{Guard: secretsGuard(t, guard.Redact), Mode: guard.Enforce}},
	}, govern.SessionConfig{Tools: w.Tools(), Fence: d, Workdir: dir})
	text := before + key + after
	for offset := range len(text) {
		for _, limit := range []int{1, 3, 8, 20, 100} {
			args := fmt.Sprintf(`{"path":"f","offset":%d,"limit":%d}`, offset, limit)
			r, err := s.Call(t.Context(), govern.Call{Step: 1, Number: 1, Tool: "read_file", Args: args}, govern.Approval{})
			if err != nil {
				t.Fatal(err)
			}
			end := min(offset+limit, len(text))
			want := text[offset:end]
			if from, to := max(offset, len(before)), min(end, len(before)+len(key)); from < to {
				want = text[offset:from] + "[redacted:aws-access-token]" + text[to:end]
			}
			if end < len(text) {
				if want != "" && !strings.HasSuffix(want, "\n") {
					want += "\n"
				}
				want += fmt.Sprintf("[cut: bytes %d to %d of %d; go on with offset %d]", offset, end, len(text), end)
			}
			if r.Text != want {
				t.Fatalf("%s: %q, want %q", args, r.Text, want)
			}
		}
	}
}

// Calls of one session may run at the same time.
func TestSessionConcurrently(t *testing.T) {
	d := &diary{}
	s := session(t, d, govern.Profile{}, govern.SessionConfig{Fence: d, Tools: []govern.Tool{saying("read", govern.Read, "text")}})
	var wg sync.WaitGroup
	texts := make([]string, 8)
	for i := range texts {
		wg.Go(func() {
			r, err := s.Call(t.Context(), govern.Call{Step: 1, Number: i, Tool: "read", Args: "{}"}, govern.Approval{})
			if err != nil {
				t.Error(err)
			}
			texts[i] = r.Text
		})
	}
	wg.Wait()
	if slices.ContainsFunc(texts, func(s string) bool { return s != "text" }) {
		t.Errorf("%q", texts)
	}
}
