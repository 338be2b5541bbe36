package match

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// oracle answers by the definition: package regexp on the unmodified patterns,
// over the whole text.
type oracle struct {
	rules    []Rule
	patterns []*regexp.Regexp
}

func newOracle(t testing.TB, rules []Rule) *oracle {
	o := &oracle{rules: rules}
	for _, r := range rules {
		re, err := regexp.Compile(r.Pattern)
		if err != nil {
			t.Fatal(err)
		}
		o.patterns = append(o.patterns, re)
	}
	return o
}

func (o *oracle) findings(text []byte) []finding {
	var all []finding
	for i, re := range o.patterns {
		group := 0
		if o.rules[i].Group != "" {
			group = re.SubexpIndex(o.rules[i].Group)
		}
		for _, m := range re.FindAllSubmatchIndex(text, -1) {
			f := finding{start: int64(m[2*group]), end: int64(m[2*group+1]), rule: i}
			if !slices.ContainsFunc(o.rules[i].Validators, func(v Validator) bool { return !v.Accept(text[f.start:f.end]) }) {
				all = append(all, f)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.rule, b.rule), cmp.Compare(a.end, b.end))
	})
	return all
}

// point is what is known after a prefix of the text.
type point struct {
	settled  int64
	reported int
}

// run feeds a text cut into pieces of the lengths that size gives, and returns
// the findings, and what was known after each piece, by offset.
func run(t testing.TB, e *Engine, text []byte, size func() int) ([]finding, map[int]point) {
	t.Helper()
	s := e.open()
	var got []finding
	points := make(map[int]point)
	settled := int64(0)
	take := func(p guard.Progress, err error, read int) {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Findings {
			i := slices.IndexFunc(e.rules, func(r *rule) bool { return r.id == f.Rule })
			opened := slices.ContainsFunc(got, func(o finding) bool { return o.end == guard.Open && o.start == f.Start && o.rule == i })
			if from := f.Start; from < settled && (!opened || f.End < settled) {
				t.Fatalf("finding %+v after %d was settled", f, settled)
			}
			got = append(got, finding{start: f.Start, end: f.End, rule: i, verdict: f.Verdict})
		}
		if p.Settled < settled || p.Settled > int64(read) {
			t.Fatalf("settled %d after %d, %d read", p.Settled, settled, read)
		}
		settled = p.Settled
		points[read] = point{settled, len(got)}
	}
	for at := 0; at < len(text); {
		n := min(max(size(), 0), len(text)-at)
		piece := append([]byte(nil), text[at:at+n]...)
		p, err := s.Write(piece)
		clear(piece) // the screen must not have kept it
		at += n
		take(p, err, at)
	}
	p, err := s.Close()
	if err == nil && p.Settled != int64(len(text)) {
		t.Fatalf("settled %d at the end of %d bytes", p.Settled, len(text))
	}
	delete(points, len(text))
	take(p, err, len(text))
	return got, points
}

// compare checks one text against the oracle in several cuts, and that what is
// known after a prefix does not depend on them.
func compare(t testing.TB, e *Engine, o *oracle, text []byte, cuts map[string]func() int) int {
	t.Helper()
	want := o.findings(text)
	bytewise, known := run(t, e, text, func() int { return 1 })
	check := func(name string, got []finding) {
		if !slices.Equal(got, want) {
			t.Fatalf("rules %s\ntext %q\ncut %s\n got %v\nwant %v", patterns(o.rules), text, name, got, want)
		}
	}
	check("bytewise", bytewise)
	for _, name := range slices.Sorted(maps.Keys(cuts)) {
		size := cuts[name]
		got, points := run(t, e, text, size)
		check(name, got)
		for at, p := range points {
			if p != known[at] {
				t.Fatalf("rules %s\ntext %q\ncut %s: after %d bytes %+v, bytewise %+v", patterns(o.rules), text, name, at, p, known[at])
			}
		}
	}
	return len(want)
}

func patterns(rules []Rule) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "\n  %q group %q", r.Pattern, r.Group)
	}
	return b.String()
}
