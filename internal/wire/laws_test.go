package wire

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// made is an answer that was made up, streamed and not.
type made struct {
	format   *Format
	choices  int
	payloads []string
	body     string
	args     []string // of the tool calls
	planted  []secret
}

func makeUp(w *writer, f *Format) made {
	w.planted = nil
	m := made{format: f, choices: 1}
	var all []said
	switch f {
	case OpenAIChat:
		m.choices = 1 + w.IntN(3)
		var choices [][]said
		for range m.choices {
			c := w.openaiChoice()
			choices, all = append(choices, c), append(all, c...)
		}
		m.payloads, m.body = w.openai(choices)
	case OpenAIResponses:
		items := w.responsesItems()
		for _, parts := range items {
			all = append(all, parts...)
		}
		m.payloads, m.body = w.responses(items)
	default:
		all = w.anthropicBlocks()
		m.payloads, m.body = w.anthropic(all)
	}
	for _, s := range all {
		if s.field == "tool" {
			m.args = append(m.args, s.text)
		}
	}
	m.planted = w.planted
	return m
}

func (m made) options(c *guard.Chain) Options {
	return Options{Context: context.Background(), Chain: c, Run: "run_1", Choices: m.choices, Usage: true}
}

// TestStreamedIsUnstreamed is laws 2 and 4 on made-up answers: however an
// answer is cut, a client understands the same as of the unstreamed one, the
// record is the same, and nothing that a rule finds is ever seen.
func TestStreamedIsUnstreamed(t *testing.T) {
	w := &writer{secrets: secrets(t)}
	cases := 40
	if testing.Short() {
		cases = 30
	}
	for _, v := range []guard.Verdict{guard.Redact, guard.Deny, guard.RequireApproval} {
		chain := patterns(t, v, "secrets", "credentials", "pii")
		for _, f := range all {
			t.Run(fmt.Sprintf("%s/%s", f.Name(), v), func(t *testing.T) {
				found := 0
				for seed := range uint64(cases) {
					w.Rand = rand.New(rand.NewPCG(seed, 1))
					w.odds = []int{0, 4, 12, 25}[seed%4]
					m := makeUp(w, f)
					found += len(m.planted)
					t.Run(fmt.Sprint(seed), func(t *testing.T) { checkLaws(t, w, m, m.options(chain), v) })
				}
				if found < cases/2 {
					t.Errorf("only %d secrets in %d answers", found, cases)
				}
			})
		}
	}
}

// TestGuardsOfAllModes: the same for a chain that redacts, denies, and watches.
func TestGuardsOfAllModes(t *testing.T) {
	w := &writer{secrets: secrets(t)}
	chain := guard.NewChain(guard.Options{},
		guard.Member{Guard: engine(t, "personal", guard.Redact, "pii")},
		guard.Member{Guard: engine(t, "keys", guard.Deny, "jwt", "github-pat", "private-key")},
		guard.Member{Guard: engine(t, "watch", guard.Deny, "secrets", "credentials"), Mode: guard.Shadow},
		guard.Member{Guard: engine(t, "after", guard.Redact, "secrets", "pii"), Mode: guard.Audit})
	for _, f := range all {
		for seed := range uint64(30) {
			w.Rand, w.odds = rand.New(rand.NewPCG(seed, 2)), 4+int(seed%9)
			m := makeUp(w, f)
			t.Run(fmt.Sprintf("%s/%d", f.Name(), seed), func(t *testing.T) { checkLaws(t, w, m, m.options(chain), guard.Allow) })
		}
	}
}

func checkLaws(t *testing.T, w *writer, m made, opt Options, v guard.Verdict) {
	t.Helper()
	verdict := m.format.Answer(opt, []byte(m.body))
	if verdict.Doc == nil {
		t.Fatalf("the answer was refused: %+v", verdict.Outcome)
	}
	want := hear(t, m.format, verdict.Doc, false)
	if v > guard.Allow { // the verdict of every rule
		checkUnseen(t, m, want, v)
	}
	upstream := serve(m.format, m.payloads)
	clean := len(m.planted) == 0 && opt.Calls == nil
	if clean && string(verdict.Doc) != m.body {
		t.Errorf("clean, but became\n%s", verdict.Doc)
	}
	for _, n := range []int{1, 1 + w.IntN(300), len(upstream)} {
		out, ds, o := stream(m.format, opt, upstream, n)
		got := hear(t, m.format, out, true)
		want.usage = got.usage // written otherwise
		if got.String() != want.String() {
			t.Errorf("in pieces of %d:\n%s\nunstreamed:\n%s\nof %s", n, got, want, m.body)
		}
		if r := record(ds); r != record(verdict.Decisions) {
			t.Errorf("in pieces of %d: record\n%s\nunstreamed\n%s", n, r, record(verdict.Decisions))
		}
		if o != verdict.Outcome {
			t.Errorf("in pieces of %d: outcome\n%+v\nunstreamed\n%+v", n, o, verdict.Outcome)
		}
		if m.choices == 1 && clean && noPings(out) != noPings(upstream) {
			t.Errorf("clean, but became\n%s", out)
		}
		if v == guard.Redact && m.choices == 1 {
			checkFrames(t, events(t, m.format, []byte(noPings(upstream))), events(t, m.format, []byte(noPings(out))))
		}
		if t.Failed() {
			t.Logf("upstream:\n%s", upstream)
			t.FailNow()
		}
	}
}

// noPings is a stream without its pings, which overtake what waits.
func noPings(out []byte) string {
	return strings.ReplaceAll(string(out), "event: ping\ndata: "+ping+"\n\n", "")
}

const ping = `{"type": "ping"}`

// checkUnseen looks for what was planted, and for broken tool calls.
func checkUnseen(t *testing.T, m made, h heard, v guard.Verdict) {
	t.Helper()
	for channel, text := range h.text {
		said := []string{text}
		if isArgs(channel) {
			values, valid := spoken(text)
			said = append(said, values...)
			if !valid {
				t.Errorf("%s is not valid JSON: %s", channel, text)
			}
			if v > guard.Redact && !slices.Contains(m.args, text) {
				t.Errorf("%s is not complete: %s", channel, text)
			}
		}
		for _, p := range m.planted {
			for _, s := range said {
				if strings.Contains(s, p.never) {
					t.Errorf("%s: %s is seen in %s: %q", p.rule, p.never, channel, s)
				}
			}
		}
	}
}

func isArgs(channel string) bool {
	parts := strings.Split(channel, "/")
	last := parts[len(parts)-1]
	return last == "input" && len(parts) == 3 || last == "arguments" || len(parts) == 3 && parts[1] == "tool"
}

// checkFrames compares the frames of a redacted answer with those that came:
// none is missing but a signature's, and one that says what it said is the same
// to the byte.
func checkFrames(t *testing.T, in, out []string) {
	t.Helper()
	for _, came := range in {
		if len(out) == 0 {
			t.Fatalf("a frame is missing: %s", came)
		}
		left := out[0]
		if left != came && strings.Contains(came, `"signature_delta"`) {
			continue
		}
		out = out[1:]
		a, _ := spoken(came)
		b, _ := spoken(left)
		if left != came && slices.Equal(a, b) {
			t.Errorf("a frame that says the same changed: %s\nto %s", came, left)
		}
		if len(b) < len(a) {
			t.Errorf("a frame lost something: %s\nto %s", came, left)
		}
	}
	if len(out) > 0 {
		t.Errorf("more frames than came: %s", out)
	}
}
