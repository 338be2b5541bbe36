package wire

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

// word is a guard that finds one word.
func word(t *testing.T, rule, word string, v guard.Verdict) guard.Member {
	t.Helper()
	g, err := match.Compile([]match.Rule{{ID: rule, Pattern: word, Verdict: v}}, match.Options{Name: rule, Key: []byte("key"), Verdict: v})
	if err != nil {
		t.Fatal(err)
	}
	return guard.Member{Guard: g}
}

var twoPlaces = NewPlaceholders(map[string]string{"[EMAIL_1]": "ann@corp.example", "[EMAIL_12]": "bea \"b\" \\ \n", "[KEY_1]": "k"})

// Nothing waits but what may still become a placeholder that there is.
func TestRestoreHoldsLeast(t *testing.T) {
	for _, c := range []struct {
		text string
		held string // after it
	}{
		{"text", ""},
		{"text [", "["},
		{"[E", "[E"},
		{"[e", "[e"},
		{"[X", ""},
		{"[EMAIL_1", "[EMAIL_1"},
		{"[EMAIL_1]", ""},
		{"[EMAIL_12", "[EMAIL_12"},
		{"[EMAIL_13", ""},
		{"[[EM", "[EM"},
		{"[EM[", "["},
		{"[KEY_2", ""},
		{"[" + strings.Repeat("E", 100), ""},
	} {
		r := restoring{known: twoPlaces}
		shown := 0
		for i := range len(c.text) {
			shown += len(r.next([]byte{c.text[i]}))
		}
		if string(r.held) != c.held || shown+len(c.held) != len(c.text) {
			t.Errorf("behind %q it holds %q and has shown %d, want %q", c.text, r.held, shown, c.held)
		}
	}
}

// However a text is cut, the guards are shown the same and the same comes back.
func TestRestoreAnyCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"[EMAIL_1]", "[email_12]", "[KEY_1]", "[KEY_1", "[", "]", "EMAIL_1]", "[EMAIL_", "1", "2", "é", "x", " ", "[nobody_1]",
		}), 0, 20).Draw(t, "parts")
		text := strings.Join(parts, "")
		whole := restoring{known: twoPlaces}
		want := string(whole.next([]byte(text)))
		want += string(whole.last())
		cut := restoring{known: twoPlaces}
		got := ""
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			got += string(cut.next([]byte(rest[:n])))
			rest = rest[n:]
		}
		got += string(cut.last())
		if got != want || len(got) != len(text) {
			t.Fatalf("%q: the guards are shown %q, want %q", text, got, want)
		}
		if fmt.Sprint(cut.pending) != fmt.Sprint(whole.pending) {
			t.Fatalf("%q: found %v, want %v", text, cut.pending, whole.pending)
		}
	})
}

// A redaction that goes over a placeholder stays: nothing comes back inside it.
func TestRedactionGoesOver(t *testing.T) {
	r := restoring{known: twoPlaces}
	r.next([]byte("a [KEY_1] b [EMAIL_1]"))
	if got := r.before(1); len(got) != 0 {
		t.Errorf("before 1: %v", got)
	}
	r.redacted(4)
	if got := r.settled(11); got != 11 {
		t.Errorf("settled %d, want 11: what was redacted holds nothing", got)
	}
	if got := r.settled(21); got != 12 {
		t.Errorf("settled %d, want 12: the next one leaves whole", got)
	}
	if got := r.before(21); len(got) != 1 || got[0].value != "ann@corp.example" {
		t.Errorf("before 21: %v", got)
	}
}

// A person's yes lifts what asks for approval; a redaction beside it stays.
func TestLiftedAnswer(t *testing.T) {
	answer := func(text string) []byte {
		return fmt.Appendf(nil, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, text)
	}
	chain := guard.NewChain(guard.Options{}, word(t, "ask", "ASK", guard.RequireApproval), word(t, "hide", "HIDE", guard.Redact), word(t, "no", "NO!", guard.Deny))
	for _, c := range []struct {
		text, want string
		status     Status
	}{
		{"a ASK b HIDE c", "a ASK b [redacted:hide] c", Redacted},
		{"a ASK b", "a ASK b", Allowed},
		{"a ASK b NO! c", "a ASK b ", Blocked},
	} {
		v := OpenAIChat.Answer(Options{Context: t.Context(), Chain: chain.Lifted()}, answer(c.text))
		if !strings.Contains(string(v.Doc), fmt.Sprintf("%q", c.want)) || v.Outcome.Status != c.status {
			t.Errorf("%q: %s, %s, want %q, %s", c.text, v.Outcome.Status, v.Doc, c.want, c.status)
		}
	}
}
