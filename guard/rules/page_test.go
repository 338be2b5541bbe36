package rules_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/disclosure"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/guard/rules/gitleaks"
)

var update = flag.Bool("update", false, "write docs/rules.md")

// TestRulesPage keeps the page of the rules as the packs have them.
func TestRulesPage(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "rules.md")
	page := rulesPage(t)
	if *update {
		if err := os.WriteFile(file, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, page) {
		t.Error("docs/rules.md is not what the packs say: run go generate ./guard/rules")
	}
}

const rulesHead = `<!-- Written by go generate ./guard/rules from the packs; do not edit. -->

# The rules

Rules come in packs; a profile and ` + "`stoplog guard --rules`" + ` name packs or single rules. A rule is a pattern, the part of its match that is
replaced, validators for what a pattern can't say, and examples. Where two rules find overlapping text it is replaced once, under the name of the one that
starts first, then of the one that comes first.

**Holds** is the most bytes that wait for the rule: those from the start of what would be replaced on. *masked* means that a match can be longer than the
hold limit; from there on its text is replaced up to its end. **Literal** is a string that each match contains; a rule without one can begin in any text.
In the examples the middle of what is long is left out, since some of it looks like secrets.
`

// about is what is to know of a pack.
var about = map[string]string{
	rules.Injection: " They ask for nothing: what they find is recorded. No program runs them unless it is told to, and a profile runs them over\n" +
		"what a model reads of others alone: tool results and documents. A phrase proves nothing, and the absence of one even less.",
}

func rulesPage(t *testing.T) []byte {
	var b bytes.Buffer
	b.WriteString(rulesHead)
	for _, pack := range rules.Names() {
		rs, err := rules.Select(pack)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n", pack)
		first := len(rs)
		for i, r := range rs {
			if len(r.Match) == 0 {
				first = min(first, i)
				break
			}
		}
		rs = withExamples(rs)
		e, err := match.Compile(rs, match.Options{Name: pack})
		if err != nil {
			t.Fatal(err)
		}
		cert := e.Certificate()
		fmt.Fprintf(&b, "\n%d rules, which hold at most %d bytes.%s\n", len(rs), cert.Hold, about[pack])
		for i, r := range rs {
			if i == first {
				writeSource(&b, len(rs)-first)
			}
			writeRule(&b, r, cert.Rules[i])
		}
	}
	writeDisclosure(t, &b)
	return b.Bytes()
}

// writeDisclosure tells of what is no pattern, with examples that are tried.
func writeDisclosure(t *testing.T, b *bytes.Buffer) {
	canary := disclosure.Canary([]byte("key of the tests"), "default")
	prompt := "You are Max, the assistant of Acme. Never tell a customer that refunds over 500 euros need no approval. Reference " + canary + "."
	g := disclosure.New(disclosure.Options{Name: "disclosure", Verdict: guard.Redact, Prompt: prompt})
	fmt.Fprintf(b, "\n## disclosure\n\nNo patterns: what is looked for is the system prompt of the request, in its answer. A guard has it for its only rule, and each request\n"+
		"brings its own prompt. In the examples that is %s.\n", codes(elide([]string{prompt})))
	for _, r := range []struct {
		id, what, holds string
		finds, spares   []string
	}{
		{disclosure.RuleOverlap, fmt.Sprintf("%d words of the prompt or more, of %d letters or more, in its order, whatever their case and what stands between them",
			disclosure.LeastWords, disclosure.LeastLetters), fmt.Sprintf("%d and a word, then masked", disclosure.HoldLimit),
			[]string{"My rules: never tell a customer that refunds over 500 euros need no approval.", "NEVER tell a customer\n- that refunds over 500 EUROS"},
			[]string{"You are right, and refunds over 500 euros take a week.", "Never tell a customer that refunds over 400 euros exist"}},
		{disclosure.RuleCanary, "a word that the prompt has for this and nothing else has; it is in the system prompt of each profile's own runs", "24",
			[]string{"The reference is " + canary + ".", strings.ToUpper(canary)}, []string{canary[:20], "canary"}},
	} {
		for i, text := range append(r.finds, r.spares...) {
			if found := findings(t, g, []byte(text)); (len(found) == 1 && found[0].Rule == r.id) != (i < len(r.finds)) {
				t.Errorf("%s: %d findings in %q", r.id, len(found), text)
			}
		}
		fmt.Fprintf(b, "\n### %s\n\nSeverity high · holds %s · %s\n\n- finds %s\n- spares %s\n", r.id, r.holds, r.what, codes(elide(r.finds)), codes(elide(r.spares)))
	}
}

// writeSource says what is to know of the rules of gitleaks.
func writeSource(b *bytes.Buffer, n int) {
	fmt.Fprintf(b, "\n%d more are those of gitleaks (%s, MIT), with its entropy floors, and with its allow lists and stop words as far as they look at\n"+
		"the secret. Their examples are made from their patterns.\n\n", n, gitleaks.Source)
	fmt.Fprintf(b, "| mended | why |\n|---|---|\n")
	mends := gitleaks.Mends()
	for _, id := range slices.Sorted(maps.Keys(mends)) {
		fmt.Fprintf(b, "| `%s` | %s |\n", id, mends[id])
	}
	for _, id := range slices.Sorted(maps.Keys(gitleaks.LeftOut)) {
		fmt.Fprintf(b, "| `%s` | Left out: %s. |\n", id, gitleaks.LeftOut[id])
	}
}

func writeRule(b *bytes.Buffer, r match.Rule, c match.RuleCertificate) {
	holds := fmt.Sprintf("%d", c.Hold)
	if c.Cut {
		holds += ", then masked"
	}
	fmt.Fprintf(b, "\n### %s\n\nSeverity %s · holds %s", r.ID, r.Severity, holds)
	if len(c.Literals) > 0 {
		fmt.Fprintf(b, " · literal %s", codes(c.Literals))
	}
	var checks []string
	for _, v := range r.Validators {
		checks = append(checks, v.Name)
	}
	if len(checks) > 0 {
		fmt.Fprintf(b, " · checked by %s", strings.Join(checks, ", "))
	}
	fmt.Fprintf(b, "\n\n- finds %s\n- spares %s\n", codes(elide(r.Match)), codes(elide(r.NoMatch)))
}

// codes writes texts as code, whatever is in them.
func codes(texts []string) string {
	var out []string
	for _, s := range texts {
		s = strconv.Quote(s)
		if s[1:len(s)-1] != "" && !strings.ContainsAny(s[1:len(s)-1], "\\ ") {
			s = s[1 : len(s)-1]
		}
		out = append(out, "`"+strings.ReplaceAll(s, "`", "'")+"`")
	}
	return strings.Join(out, ", ")
}

var longWord = regexp.MustCompile(`[\w+/=.~-]{17,}`)

// elide leaves out the middle of long words.
func elide(texts []string) []string {
	var out []string
	for _, s := range texts {
		s = longWord.ReplaceAllStringFunc(s, func(w string) string { return w[:9] + "…" + w[len(w)-3:] })
		if r := []rune(s); len(r) > 120 {
			s = string(r[:100]) + "…"
		}
		out = append(out, s)
	}
	return out
}
