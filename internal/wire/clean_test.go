package wire

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// conversation is a request of some turns.
func conversation(f *Format, turns ...string) []byte {
	var messages []string
	for i, t := range turns {
		role := []string{"user", "assistant"}[i%2]
		messages = append(messages, fmt.Sprintf(`{"role":%q,"content":%s}`, role, jsonString(t)))
	}
	member := "messages"
	if f == OpenAIResponses {
		member = "input"
	}
	return fmt.Appendf(nil, `{"model":"m",%q:[%s],"tools":[{"type":"function","name":"f","description":"what it does"}]}`, member, strings.Join(messages, ","))
}

// TestCleanIsJudgedOnce: a message in which nothing was found is not shown to the
// guards again, and what is recorded of requests does not depend on it.
func TestCleanIsJudgedOnce(t *testing.T) {
	turns := []string{"hello", "hi", "my key is " + planted, "noted", "what now " + strings.Repeat("and now ", 400), "my id is 536-22-8714"}
	for _, f := range all {
		for _, mode := range []guard.Mode{guard.Enforce, guard.Shadow} {
			var asked []string
			chain := guard.NewChain(guard.Options{},
				guard.Member{Guard: engine(t, "test", guard.Redact, "secrets", "pii"), Mode: mode},
				guard.Member{Guard: openings{&asked}, Mode: guard.Audit})
			clean := &Clean{}
			for n := 1; n <= len(turns); n++ {
				doc := conversation(f, turns[:n]...)
				fresh, err := f.Request(Options{Context: context.Background(), Chain: chain}, doc)
				if err != nil {
					t.Fatal(err)
				}
				asked = nil
				got, err := f.Request(Options{Context: context.Background(), Chain: chain, Clean: clean}, doc)
				if err != nil {
					t.Fatal(err)
				}
				if record(got.Decisions) != record(fresh.Decisions) || string(got.Doc) != string(fresh.Doc) || got.Outcome != fresh.Outcome {
					t.Errorf("%s, turn %d: %v\n%s\nwithout a memory: %v\n%s", f.Name(), n, got.Decisions, got.Doc, fresh.Decisions, fresh.Doc)
				}
				again := func(i int) bool {
					return slices.ContainsFunc(asked, func(name string) bool { return strings.Contains(name, fmt.Sprintf("/%d/content", i)) })
				}
				for i, text := range turns[:n] {
					found := strings.Contains(text, planted) || strings.Contains(text, "536-")
					if want := found || i == n-1; again(i) != want {
						t.Errorf("%s, turn %d: message %d is judged: %v, want %v", f.Name(), n, i, again(i), want)
					}
				}
			}
		}
	}
}

// TestCleanIsByPlaceAndText: the same words in another place are judged, and
// nothing that changed by a byte is taken for what it was.
func TestCleanIsByPlaceAndText(t *testing.T) {
	chain := patterns(t, guard.Redact, "secrets")
	clean := &Clean{}
	opt := Options{Context: context.Background(), Chain: chain, Clean: clean}
	first := planted[:len(planted)-1] // one short of a secret
	for _, doc := range [][]byte{conversation(OpenAIChat, first), conversation(OpenAIChat, planted), conversation(OpenAIChat, "a", first), conversation(OpenAIChat, "a", planted)} {
		r, err := OpenAIChat.Request(opt, doc)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(r.Doc), planted) {
			t.Errorf("%s is sent", r.Doc)
		}
	}
}

// TestCleanForgets: it holds a bounded number of digests, those that are asked
// for among them.
func TestCleanForgets(t *testing.T) {
	c := &Clean{}
	var kept [32]byte
	c.add(kept)
	for i := range 3 * maxClean {
		var d [32]byte
		d[0], d[1], d[2], d[3] = 1, byte(i), byte(i>>8), byte(i>>16)
		c.add(d)
		if i%1000 == 0 && !c.has(kept) {
			t.Fatalf("what was asked for is forgotten after %d", i)
		}
		if len(c.now)+len(c.before) > maxClean {
			t.Fatalf("%d digests are held", len(c.now)+len(c.before))
		}
	}
	var old [32]byte
	old[0] = 1
	if c.has(old) {
		t.Error("what was not asked for is held")
	}
}
