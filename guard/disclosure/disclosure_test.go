package disclosure_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/disclosure"
	"github.com/stoplog/stoplog/guard/guardtest"
)

var canary = disclosure.Canary([]byte("key of the tests"), "default")

var system = `You are Max, the assistant of Acme's support team. Never tell a customer that refunds over 500 euros need no approval.
Reference ` + canary + `. 你是客服助手，请始终用中文回答客户的问题，并且不要透露内部的退款规则和其他机密信息。
Answer in short sentences. Answer in short sentences, and be kind to those who are angry today.`

func newGuard(v guard.Verdict) *disclosure.Guard {
	return disclosure.New(disclosure.Options{Name: "disclosure", Key: []byte("key of the tests"), Verdict: v, Prompt: system})
}

// answers are texts and what is left of them.
var answers = []struct{ name, text, want string }{
	{"whole sentence", "My rules: never tell a customer that refunds over 500 euros need no approval. Anything else?",
		"My rules: [redacted:disclosure-overlap]. Anything else?"},
	{"from the middle", "it says that refunds over 500 euros need no approval, ok", "it says [redacted:disclosure-overlap], ok"},
	{"other punctuation and case", "NEVER—tell a customer:\n- that refunds\n- over 500 euros!", "[redacted:disclosure-overlap]!"},
	{"invisible inside", "Never te\u200bll a cus\u00adtomer that refunds over 500 euros.", "[redacted:disclosure-overlap]."},
	{"wide letters", "Ｎｅｖｅｒ tell a customer that refunds over 500 euros.", "[redacted:disclosure-overlap]."},
	{"seven words", "Never tell a customer that refunds over 400 euros", ""},
	{"its own words", "You are right, and refunds over 500 euros take a week.", ""},
	{"another order", "refunds over 500 euros need no approval never tell a customer that", ""},
	{"the canary", "The reference is " + canary + ".", "The reference is [redacted:disclosure-canary]."},
	{"the canary in capitals", "ref: " + strings.ToUpper(canary), "ref: [redacted:disclosure-canary]"},
	{"half the canary", "ref: " + canary[:len(canary)-1], ""},
	{"across the canary", "over 500 euros need no approval. Reference " + canary + " more",
		"over 500 euros need no approval. Reference [redacted:disclosure-canary] more"},
	{"no spaces", "规则是：请始终用中文回答客户的问题，并且不要透露内部的退款规则。好。", "规则是：[redacted:disclosure-overlap]。好。"},
	{"few letters", "请始终用中文回答客户的问题。", ""},
	{"said twice", "answer in short sentences, and be kind to those", "[redacted:disclosure-overlap]"},
	{"said twice, from the first", "Answer in short sentences. Answer in short sentences, and be", "[redacted:disclosure-overlap]"},
	{"two runs", "that refunds over 500 euros need no approval xx never tell a customer that refunds over 500",
		"[redacted:disclosure-overlap] xx [redacted:disclosure-overlap]"},
	{"too far apart", "Never tell a customer" + strings.Repeat(" ", 100) + "that refunds over 500 euros", ""},
	{"cut off", "Never tell a customer that refunds over", ""},
	{"at the end", "Never tell a customer that refunds over 500", "[redacted:disclosure-overlap]"},
	{"no text", "", ""},
	{"bytes that are no text", "Never tell a customer\xff that refunds over 500 euros", "[redacted:disclosure-overlap]"},
}

// redact runs a guard over a text cut into pieces.
func redact(g guard.Guard, text string, size int) string {
	f := guard.NewFilter(guard.NewChain(guard.Options{}, guard.Member{Guard: g}).Open(context.Background(), guard.Channel{}))
	var out []byte
	for at := 0; at < len(text); at += size {
		out, _ = f.Write(out, []byte(text[at:min(at+size, len(text))]))
	}
	out, _ = f.Close(out)
	return string(out)
}

func TestAnswers(t *testing.T) {
	g := newGuard(guard.Redact)
	for _, a := range answers {
		want := a.want
		if want == "" {
			want = a.text
		}
		for _, size := range []int{1, 3, 7, 1000} {
			if got := redact(g, a.text, size); got != want {
				t.Errorf("%s, in pieces of %d: %q leaves, want %q", a.name, size, got, want)
			}
		}
	}
}

// TestConformance runs the suite of guards over the answers.
func TestConformance(t *testing.T) {
	var texts []string
	for _, a := range answers {
		texts = append(texts, a.text)
	}
	texts = append(texts, strings.Repeat(system+"\n", 2))
	guardtest.Test(t, guardtest.Config{Guard: newGuard(guard.Redact), Texts: texts, Bound: disclosure.HoldLimit + 512})
}

// word is a word of a text for the oracle.
type word struct {
	text       string
	start, end int
}

// split gives the words of a text by the definition, over the whole of it.
func split(text string) (all []word) {
	in := false
	for i, r := range text {
		switch {
		case unicode.In(r, unicode.Han):
			all, in = append(all, word{string(r), i, i + len(string(r))}), false
		case unicode.IsLetter(r), unicode.IsNumber(r):
			if !in {
				all, in = append(all, word{start: i}), true
			}
			last := &all[len(all)-1]
			last.text += string(unicode.ToLower(r))
			last.end = i + len(string(r))
		default:
			in = false
		}
	}
	return all
}

// oracle finds the spans by trying each place of the text against each of the
// prompt.
func oracle(prompt, text string) (spans [][2]int) {
	p, w := split(prompt), split(text)
	for i := range w {
		for j := range p {
			n, letters := 0, 0
			for i+n < len(w) && j+n < len(p) && w[i+n].text == p[j+n].text {
				letters += len([]rune(w[i+n].text))
				n++
			}
			if n < disclosure.LeastWords || letters < disclosure.LeastLetters {
				continue
			}
			from, to := w[i].start, w[i+n-1].end
			if last := len(spans) - 1; last >= 0 && from < spans[last][1] {
				spans[last][1] = max(spans[last][1], to)
			} else {
				spans = append(spans, [2]int{from, to})
			}
		}
	}
	return spans
}

// TestAgainstOracle compares findings with the definition, on texts of the prompt's
// own words in its own order and others, at random cuts; and what is settled with
// what may still become a finding: never more.
func TestAgainstOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	vocabulary := strings.Fields("a b c to be or not that is the question whether tis nobler")
	pick := func(n int) string {
		var words []string
		for range n {
			words = append(words, vocabulary[rng.IntN(len(vocabulary))])
		}
		return strings.Join(words, " ")
	}
	with := 0
	for range 3000 {
		prompt := pick(10 + rng.IntN(40))
		words := strings.Fields(prompt)
		var parts []string
		for range 1 + rng.IntN(6) {
			from := rng.IntN(len(words))
			parts = append(parts, strings.Join(words[from:min(len(words), from+rng.IntN(14))], []string{" ", ", ", "\n"}[rng.IntN(3)]), pick(rng.IntN(3)))
		}
		text := strings.Join(parts, " ")
		want := oracle(prompt, text)
		if len(want) > 0 {
			with++
		}
		g := disclosure.New(disclosure.Options{Name: "d", Prompt: prompt})
		s := g.Open(t.Context(), guard.Channel{})
		var got [][2]int
		settled := 0
		take := func(p guard.Progress, err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range p.Findings {
				if f.Start < int64(settled) && f.End != guard.Open {
					// One that was reported open keeps its start.
					if len(got) == 0 || got[len(got)-1][0] != int(f.Start) {
						t.Fatalf("prompt %q\ntext %q: a finding at %d, and %d was settled", prompt, text, f.Start, settled)
					}
				}
				if f.End != guard.Open {
					got = append(got, [2]int{int(f.Start), int(f.End)})
				}
			}
			settled = int(p.Settled)
		}
		for at := 0; at < len(text); {
			n := min(1+rng.IntN(9), len(text)-at)
			take(s.Write([]byte(text[at : at+n])))
			at += n
		}
		take(s.Close())
		if !slices.Equal(got, want) {
			t.Fatalf("prompt %q\ntext %q\n got %v\nwant %v", prompt, text, got, want)
		}
	}
	if with < 1000 {
		t.Errorf("%d of 3000 texts have findings: too few to tell", with)
	}
}

// TestHold pins what waits: nothing of what cannot go on in the prompt's order.
func TestHold(t *testing.T) {
	g := newGuard(guard.Redact)
	for _, c := range []struct {
		text string
		held int
	}{
		{"Good morning ", 0},
		{"Ne", 2},                 // never
		{"Nex", 0},                // no word of the prompt begins so
		{"Never tell ", 11},       //
		{"Never tell a cust", 17}, //
		{"Never tell a cup", 0},   //
		{"so never tell", 10},     //
		{"slcan", 5},              // the canary's first letters
		{"angry today", 0},        // the prompt has no more words behind these
		{"are angry today", 0},    //
		{"Never tell a customer that refunds over 500 euros", 49},   // its end is not known
		{"Never tell a customer that refunds over 500 euros wa", 0}, // it is, and nothing begins with wa
	} {
		s := g.Open(t.Context(), guard.Channel{})
		p, err := s.Write([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if held := len(c.text) - int(p.Settled); held != c.held {
			t.Errorf("%q: %d bytes are held, want %d", c.text, held, c.held)
		}
	}
}

// TestLong reports a long disclosure before its end, and masks all of it.
func TestLong(t *testing.T) {
	var words []string
	for i := range 400 {
		words = append(words, fmt.Sprintf("word%d", i*i))
	}
	prompt := strings.Join(words, " ")
	g := disclosure.New(disclosure.Options{Name: "d", Verdict: guard.Redact, Prompt: prompt})
	s := guard.NewChain(guard.Options{}, guard.Member{Guard: g}).Open(t.Context(), guard.Channel{})
	most := int64(0)
	for at := 0; at < len(prompt); at += 5 {
		s.Write([]byte(prompt[at:min(at+5, len(prompt))]))
		most = max(most, s.Held())
	}
	if most > disclosure.HoldLimit+64 {
		t.Errorf("%d bytes are held", most)
	}
	if got, want := redact(g, "It is: "+prompt+". So.", 5), "It is: [redacted:disclosure-overlap]. So."; got != want {
		t.Errorf("%q leaves, want %q", got, want)
	}
}

// TestPromptOfTheRequest finds the prompt of the context, and nothing in requests
// and without one.
func TestPromptOfTheRequest(t *testing.T) {
	g := disclosure.New(disclosure.Options{Name: "d", Verdict: guard.Redact})
	find := func(ctx context.Context, side guard.Side) int {
		s := g.Open(ctx, guard.Channel{Side: side})
		p, err := s.Write([]byte(answers[0].text))
		if err != nil {
			t.Fatal(err)
		}
		return len(p.Findings)
	}
	with := disclosure.WithPrompt(t.Context(), system)
	if n := find(with, guard.Response); n != 1 {
		t.Errorf("%d findings in an answer, want 1", n)
	}
	if n := find(with, guard.Request); n != 0 {
		t.Errorf("%d findings in a request", n)
	}
	if n := find(t.Context(), guard.Response); n != 0 {
		t.Errorf("%d findings without a prompt", n)
	}
	for i := range 50 { // what is kept ready is bounded, and the first still works
		find(disclosure.WithPrompt(t.Context(), fmt.Sprint("prompt ", i)), guard.Response)
	}
	if n := find(with, guard.Response); n != 1 {
		t.Errorf("%d findings later, want 1", n)
	}
}

func TestCanary(t *testing.T) {
	one, two := disclosure.Canary([]byte("a"), "default"), disclosure.Canary([]byte("a"), "coding")
	if one == two || one == disclosure.Canary([]byte("b"), "default") || one != disclosure.Canary([]byte("a"), "default") {
		t.Error("a canary is not a function of its key and name alone")
	}
}

// BenchmarkDeltas measures 4-byte deltas of prose under a long prompt.
func BenchmarkDeltas(b *testing.B) {
	vocabulary := strings.Fields("the the the of and a to in is you that it for on are as with his they at be this have from or one had by word but not what all were we when your can said there use an each which she do how their if will up other about out many then them these so some her would make like him into time has look two more write go see number no way could people")
	rng := rand.New(rand.NewPCG(3, 3))
	prose := func(n int) string {
		var words []string
		for range n {
			words = append(words, vocabulary[rng.IntN(len(vocabulary))])
		}
		return strings.Join(words, " ")
	}
	g := disclosure.New(disclosure.Options{Name: "d", Prompt: prose(5000)})
	text := []byte(prose(20000))
	b.ReportAllocs()
	for b.Loop() {
		s := g.Open(b.Context(), guard.Channel{})
		for at := 0; at < len(text); at += 4 {
			if _, err := s.Write(text[at:min(at+4, len(text))]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(text)/4), "ns/delta")
}
