package match_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/guardtest"
	"github.com/stoplog/stoplog/guard/match"
)

// These are what the study that the engine stands on left untested.

// loadText is how long the texts of TestCachesUnderLoad are, in bytes, and
// loadWaiting how many streams of each are open at once.
var loadText, loadWaiting = 1_500, 6

// TestCachesUnderLoad has streams on several goroutines build the automata of all
// packs together, with room for them and with so little that they are forgotten all
// the time, while others wait in forgotten states; each finds what it finds alone.
func TestCachesUnderLoad(t *testing.T) {
	p := newProof(t)
	const streams = 5
	waiting := loadWaiting
	texts := make([]string, streams)
	want := make([][]guard.Finding, streams)
	alone := packs(t)
	for i := range texts {
		rng := rand.New(rand.NewPCG(uint64(i), 77))
		for len(texts[i]) < loadText {
			texts[i] += p.make(rng).text + "\n"
		}
		want[i] = all(t, alone, texts[i])
	}
	for _, budget := range []int{0, 8_000} {
		e := packs(t)
		if budget > 0 {
			match.SetBudget(e, budget)
		}
		var wg sync.WaitGroup
		for i, text := range texts {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), 78))
				halfway := make([]guard.Screen, waiting)
				got := make([][]guard.Finding, waiting)
				for k := range halfway {
					halfway[k] = e.Open(context.Background(), guard.Channel{})
				}
				for k := 0; k < 2*waiting; k++ { // half of each text, then the rest
					s, from, to := halfway[k%waiting], k/waiting*len(text)/2, (k/waiting+1)*len(text)/2
					for at := from; at < to; {
						n := min(1+rng.IntN(40), to-at)
						said, err := s.Write([]byte(text[at : at+n]))
						if err != nil {
							t.Error(err)
							return
						}
						got[k%waiting] = append(got[k%waiting], said.Findings...)
						at += n
					}
				}
				for k, s := range halfway {
					said, err := s.Close()
					if got := append(got[k], said.Findings...); err != nil || !slices.Equal(got, want[i]) {
						t.Errorf("budget %d, text %d: %d findings, alone %d; %v", budget, i, len(got), len(want[i]), err)
						return
					}
				}
			})
		}
		wg.Wait()
		if budget > 0 && match.Generation(e) == 0 {
			t.Error("nothing was forgotten")
		}
	}
}

// TestAllowListsAndStopWords: a match that a list or a stop word takes out is no
// finding, still consumes its text, and leaves as soon as it is decided, at any cut.
func TestAllowListsAndStopWords(t *testing.T) {
	e := compile(t, match.Options{Key: []byte("k")},
		match.Rule{ID: "key", Pattern: `\bkey_[a-z0-9]{4,12}\b`, Validators: []match.Validator{match.Without("example", "test"), match.Entropy(2.2)}})
	text := "key_example1 key_ab12cd key_aaaaaa key_latest9x key_q1w2e3.key_testkey_x9y8"
	out, _, _ := through(t, redacting{e}, text, 1)
	if want := "key_example1 [redacted:key] key_aaaaaa key_latest9x [redacted:key].key_testkey_x9y8"; out != want {
		t.Errorf("%q leaves, want %q", out, want)
	}
	s := e.Open(t.Context(), guard.Channel{})
	if said, err := s.Write([]byte("key_example1 ")); err != nil || said.Settled != 13 {
		t.Errorf("%d of 13 bytes are settled once the match is refused, %v", said.Settled, err)
	}
	guardtest.Run(t, e, text)
}

// redacting is a guard whose findings are replaced.
type redacting struct{ guard.Guard }

func (r redacting) Open(ctx context.Context, ch guard.Channel) guard.Screen {
	return &redactingScreen{r.Guard.Open(ctx, ch)}
}

type redactingScreen struct{ guard.Screen }

func (s *redactingScreen) Write(p []byte) (guard.Progress, error) { return redacted(s.Screen.Write(p)) }
func (s *redactingScreen) Close() (guard.Progress, error)         { return redacted(s.Screen.Close()) }

func redacted(p guard.Progress, err error) (guard.Progress, error) {
	for i := range p.Findings {
		p.Findings[i].Verdict = guard.Redact
	}
	return p, err
}

// TestSwallowCap: a key that begins and does not end swallows what follows, up to
// the cap that the product has; then the rest is looked at again.
func TestSwallowCap(t *testing.T) {
	const begin, token = "-----BEGIN RSA PRIVATE KEY-----\n", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	filler := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n", 500)
	text := "here: " + begin + filler + "and " + token + " behind"
	e := packs(t, "secrets")
	outs := map[string]string{}
	for _, n := range []int{1, 7, 512, 513, 4096, 1 << 20} {
		out, after, stop := through(t, redacting{e}, text, n)
		if stop != nil {
			t.Fatalf("in pieces of %d: stopped: %+v", n, stop)
		}
		outs[out] = fmt.Sprint(n)
		if n == 1 {
			if got := after[len("here: ")+match.DefaultHoldLimit+3]; got != "here: [redacted:private-key]" {
				t.Errorf("%q is out where the hold limit is reached", got)
			}
		}
	}
	if len(outs) != 1 {
		t.Fatalf("%d texts leave, by the size of the pieces: %v", len(outs), outs)
	}
	for out := range outs {
		swallowed := len(text) - len(out) + len("[redacted:private-key]") + len("[redacted:github-pat]") - len(token)
		if swallowed < match.DefaultSwallowLimit || swallowed > match.DefaultSwallowLimit+64 {
			t.Errorf("%d bytes are swallowed, want %d", swallowed, match.DefaultSwallowLimit)
		}
		if !strings.HasSuffix(out, "and [redacted:github-pat] behind") {
			t.Errorf("what follows the cap is not looked at: …%q", out[len(out)-80:])
		}
	}
}

// TestChainsThatStop: of guards that redact, ask and deny, over texts of all packs,
// nothing leaves of the first span that asks or denies or of what follows, and what
// is before leaves as if nothing came behind; at any cut.
func TestChainsThatStop(t *testing.T) {
	p := newProof(t)
	deny := map[string]bool{"github-pat": true, "private-key": true, "iban": true, "us-ssn": true}
	var redact, stop []match.Rule
	for _, r := range p.rules {
		if deny[r.ID] {
			stop = append(stop, r)
		} else {
			redact = append(redact, r)
		}
	}
	compileAs := func(name string, v guard.Verdict, rs []match.Rule) guard.Guard {
		return compile(t, match.Options{Name: name, Verdict: v, Evasions: match.Evasions}, rs...)
	}
	values := match.NewLiterals(match.LiteralOptions{Name: "c", Verdict: guard.RequireApproval, Evasions: match.Evasions})
	for i, v := range p.values[:10] {
		if _, err := values.Add(fmt.Sprint("value-", i), v); err != nil {
			t.Fatal(err)
		}
	}
	chain := guard.NewChain(guard.Options{}, guard.Member{Guard: compileAs("a", guard.Redact, redact)},
		guard.Member{Guard: compileAs("b", guard.Deny, stop)}, guard.Member{Guard: values})
	rng := rand.New(rand.NewPCG(6, 6))
	stops := map[guard.Verdict]int{}
	for range 300 {
		text := p.make(rng).text
		want, verdict := "", guard.Allow
		at, name := 0, ""
		worst := guard.Allow
		end := func(upTo int) { // the span that is open ends
			if worst > guard.Redact && verdict == guard.Allow {
				verdict = worst
			}
			if verdict == guard.Allow && name != "" {
				want += "[redacted:" + name + "]"
			}
			if verdict == guard.Allow {
				want += text[at:upTo]
			}
		}
		found := slices.DeleteFunc(p.find(text, p.likely), func(f place) bool { return f.number >= len(p.rules)+10 })
		slices.SortStableFunc(found, func(a, b place) int { // by start, then guard, as the chain names them
			group := func(f place) int {
				if f.number >= len(p.rules) {
					return 2
				}
				return one(deny[p.rules[f.number].ID])
			}
			if a.start != b.start {
				return a.start - b.start
			}
			return group(a) - group(b)
		})
		for _, f := range found {
			v, rule := guard.RequireApproval, fmt.Sprint("value-", f.number-len(p.rules))
			if f.number < len(p.rules) {
				rule = p.rules[f.number].ID
				v = map[bool]guard.Verdict{true: guard.Deny, false: guard.Redact}[deny[rule]]
			}
			if f.start >= at {
				end(f.start)
				name, worst = rule, guard.Allow
			}
			worst = max(worst, v)
			at = max(at, f.end)
		}
		end(len(text))
		for _, most := range []int{1, 5, 80, 1000} {
			f := guard.NewFilter(chain.Open(t.Context(), guard.Channel{}))
			var out []byte
			for at := 0; at < len(text); {
				n := min(1+rng.IntN(most), len(text)-at)
				out, _ = f.Write(out, []byte(text[at:at+n]))
				at += n
			}
			out, step := f.Close(out)
			got := guard.Allow
			if step.Stop != nil {
				got = step.Stop.Verdict
			}
			if string(out) != want || got != verdict {
				t.Fatalf("%q in pieces of up to %d: %q leaves, %v; want %q, %v", text, most, out, got, want, verdict)
			}
		}
		stops[verdict]++
	}
	t.Logf("ends of 300 texts: %v", stops)
	if stops[guard.Allow] < 30 || stops[guard.RequireApproval] < 10 || stops[guard.Deny] < 10 {
		t.Error("too few of a kind to say anything")
	}
}

// TestTooWideForAFront: rules that begin in more ways than a front can follow, or run
// on for longer, are handed to tables of their own, and find what regexp finds.
func TestTooWideForAFront(t *testing.T) {
	var many []string
	for i := range 900 {
		many = append(many, fmt.Sprintf("w%dx%d", i*7919%100_003, i))
	}
	wide := []match.Rule{
		{ID: "many", Pattern: `\b(?:` + strings.Join(many, "|") + `)-[0-9]{2}\b`},
		{ID: "steps", Pattern: `(?:[a-z]?[0-9]?){60}!`},
		{ID: "run", Pattern: `[^ \n]{1,200}@@`},
		{ID: "forks", Pattern: `(?:a|ab|abc|b|bc|c){3,40}d(?P<g>[a-d]{2,30})e`, Group: "g"},
		{ID: "anything", Pattern: `.{3,90}?(?:x9|9x)z`},
	}
	p := &whole{rules: wide}
	for _, r := range wide {
		p.patterns = append(p.patterns, regexp.MustCompile(r.Pattern))
	}
	e := compile(t, match.Options{HoldLimit: 1 << 20, Key: []byte("k")}, wide...)
	rng := rand.New(rand.NewPCG(12, 12))
	found := map[string]int{}
	for range 150 {
		var b strings.Builder
		for range 1 + rng.IntN(25) {
			b.WriteString([]string{many[rng.IntN(len(many))] + "-42", "abcabcd", "abcd", "cdabe", "a1b2c3!", "!", "@@", " ", "\n", "x9z", "9", "é", many[rng.IntN(len(many))]}[rng.IntN(13)])
		}
		text := b.String()
		want := p.find(text, every)
		for _, most := range []int{1, 4, 50, 5000} {
			s := e.Open(t.Context(), guard.Channel{})
			var got []place
			take := func(said guard.Progress, err error) {
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range said.Findings {
					got = append(got, place{int(f.Start), int(f.End), slices.IndexFunc(wide, func(r match.Rule) bool { return r.ID == f.Rule })})
				}
			}
			for at := 0; at < len(text); {
				n := min(1+rng.IntN(most), len(text)-at)
				take(s.Write([]byte(text[at : at+n])))
				at += n
			}
			if take(s.Close()); !slices.Equal(got, want) {
				t.Fatalf("%q in pieces of up to %d: %v, want %v", text, most, got, want)
			}
		}
		for _, f := range want {
			found[wide[f.number].ID]++
		}
	}
	t.Logf("findings: %v", found)
	if len(found) < len(wide) {
		t.Errorf("only %v found anything", found)
	}
}
