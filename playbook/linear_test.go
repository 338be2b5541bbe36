package playbook

import (
	"bytes"
	"fmt"
	"testing"
)

// long is a playbook of n steps, each with a command, a scope and a condition,
// a pause every hundred, and a loop back from one step in a thousand.
func long(n int) []byte {
	var b bytes.Buffer
	b.WriteString("playbook: long\nmax_iterations: 3\ninputs: {target: string}\nsteps:\n")
	for i := range n {
		switch {
		case i%100 == 50:
			fmt.Fprintf(&b, "  - {id: ask-%d, type: pause, reason: may it go on?}\n", i)
		case i%1000 == 999:
			fmt.Fprintf(&b, "  - {id: step-%d, type: run, run: ./step, on_fail: {goto: step-%d}}\n", i, i-1)
		case i > 0 && i%100 != 51:
			fmt.Fprintf(&b, "  - id: step-%d\n    type: run\n    run: ./step --number %d\n    when: inputs.target != \"\"\n    env: {N: {expr: 'steps[\"step-0\"].stdout'}}\n    scope: {can_read: [\"**\"], can_write: [\"tmp/**\"], can_run: [./step]}\n", i, i)
		default:
			fmt.Fprintf(&b, "  - {id: step-%d, type: run, run: ./step}\n", i)
		}
	}
	return b.Bytes()
}

// What the analysis of pauses looks at grows with the file and no faster, where
// every step is lowered (no pause at all), and where handlers and loops make it
// look again.
func TestGuardsAreLinear(t *testing.T) {
	knotted := func(n int) []byte {
		var b bytes.Buffer
		b.WriteString("playbook: knotted\nmax_iterations: 3\nsteps:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {id: s%d, type: run, run: ./a, on_fail: {goto: h%d}}\n", i, i%10)
		}
		for i := range 10 {
			fmt.Fprintf(&b, "  - {id: h%d, type: run, handler: true, run: ./a, then: continue}\n", i)
		}
		return b.Bytes()
	}
	for name, make := range map[string]func(int) []byte{"long": long, "knotted": knotted} {
		work := func(n int) float64 {
			p, err := Parse("long.yaml", make(n))
			if err != nil {
				t.Fatal(err)
			}
			g := newGuards(newGraph(p), func(i int) bool { _, ok := p.Steps[i].Work.(*Pause); return ok })
			return float64(g.work)
		}
		if small, large := work(500), work(4000); large > 8*small*1.2 {
			t.Errorf("%s: eight times the steps took %.1f times the work", name, large/small)
		}
	}
}

func TestLongPlaybook(t *testing.T) {
	p, found := Lint("long.yaml", long(2000), Options{})
	if len(p.Steps) != 2000 {
		t.Errorf("%d steps, want 2000", len(p.Steps))
	}
	for _, f := range found {
		t.Errorf("%s (%s)", f.Diagnostic, f.Check)
	}
}

// go test -bench Lint -run xxx ./playbook: a playbook of 10,000 steps is checked
// in less than a second.
func BenchmarkLint(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		data := long(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, found := Lint("long.yaml", data, Options{}); len(found) > 0 {
					b.Fatal(found[0])
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(n)*1e6, "µs/step")
		})
	}
}
