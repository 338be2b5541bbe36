package match

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLeastHold compares what is held with the definition: a byte waits only
// while some continuation makes it part of a finding that others do not. The
// continuations tried are all those of up to three letters, so what the test finds
// to be needed is a lower bound: holding less is a leak, holding more may be
// right, for the sake of a longer continuation.
func TestLeastHold(t *testing.T) {
	p := &patternMaker{Rand: rand.New(rand.NewPCG(11, 11))}
	ends := []string{""}
	for from, n := 0, 0; n < 3; n++ {
		to := len(ends)
		for _, s := range ends[from:to] {
			for _, letter := range []string{"a", "b", "k", " ", "\n", "é", "ÿ", "s"} {
				ends = append(ends, s+letter)
			}
		}
		from = to
	}
	var prefixes, least, held, needed int
	for prefixes < 400 {
		r := p.rule(0)
		r.Validators = nil
		if _, err := compile(r); err != nil {
			continue
		}
		e, err := Compile([]Rule{r}, Options{Name: "least"})
		if err != nil {
			t.Fatal(err)
		}
		o := newOracle(t, []Rule{r})
		var text []byte
		s := e.open()
		for range 8 {
			letter := "abk "[p.IntN(4)]
			text = append(text, letter)
			pr, err := s.Write([]byte{letter})
			if err != nil {
				t.Fatal(err)
			}
			want := o.unsettled(text, ends)
			if pr.Settled > want {
				t.Fatalf("rule %s\nafter %q %d are settled, but a finding may yet start at %d", patterns(o.rules), text, pr.Settled, want)
			}
			prefixes++
			held += len(text) - int(pr.Settled)
			needed += len(text) - int(want)
			if pr.Settled == want {
				least++
			}
		}
	}
	t.Logf("%d prefixes, %d continuations of each: least in %.1f%%, %d bytes held, %d needed",
		prefixes, len(ends), 100*float64(least)/float64(prefixes), held, needed)
	if least*100 < 95*prefixes {
		t.Errorf("only %d of %d prefixes hold the least", least, prefixes)
	}
}

// unsettled is where the first finding starts that only some continuations of
// the text have, or the text's length.
func (o *oracle) unsettled(text []byte, ends []string) int64 {
	var common []finding // what all of them have
	var all [][]finding
	for i, end := range ends {
		found := o.findings(append(slices.Clone(text), end...))
		all = append(all, found)
		if i == 0 {
			common = found
		}
		common = slices.DeleteFunc(slices.Clone(common), func(f finding) bool { return !slices.Contains(found, f) })
	}
	first := int64(len(text))
	for _, found := range all {
		for _, f := range found {
			if !slices.Contains(common, f) {
				first = min(first, f.start)
			}
		}
	}
	return first
}
