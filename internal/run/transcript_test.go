package run

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite what transcripts and docs say")

// TestTranscripts plays testdata/*.txt, which are meant to be read aloud. A line
// that begins with "> " is an event (script_test.go has the grammar); under it
// stands what became of the run, and what is to be done. "---" begins another
// run; the last line of each counts steps, pauses, evaluations and tokens.
// -update writes what is so.
//
// After every line the run is replayed from its first event, through the stored
// forms, and must be the same; so must a snapshot that is read back; and Apply
// must not have touched its argument.
func TestTranscripts(t *testing.T) {
	seen, ends := map[edge]bool{}, map[Outcome]bool{}
	for _, file := range glob(t, "testdata/*.txt") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text), seen, ends)
			if got == string(text) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s (-want +got):\n%s", file, cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")))
		})
	}
	checkTableIsUsed(t, seen)
	for _, e := range endings {
		if !ends[Outcome{Status: e.status, Reason: e.reason}] {
			t.Errorf("no transcript ends %s, %s", e.status, e.reason)
		}
		delete(ends, Outcome{Status: e.status, Reason: e.reason})
	}
	for o := range ends {
		if !strings.HasPrefix(string(o.Reason), "signal_") || o.Status != StatusBlocked {
			t.Errorf("a transcript ends %s, %s, which is no way to end", o.Status, o.Reason)
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no file matches %s", pattern)
	}
	return files
}

// edge is one arrow of the state chart.
type edge struct {
	from Phase
	on   string
	to   Phase
}

// checkTableIsUsed fails for an arrow of the table that no transcript goes
// along; play fails for one that is not in the table.
func checkTableIsUsed(t *testing.T, seen map[edge]bool) {
	for _, row := range Transitions {
		for _, to := range row.To {
			if e := (edge{row.From, row.On, to}); !seen[e] {
				t.Errorf("no transcript goes from %s by %s to %s", e.from, e.on, e.to)
			}
		}
	}
}

// play plays a transcript and returns it as it should be written.
func play(t *testing.T, text string, seen map[edge]bool, ends map[Outcome]bool) string {
	t.Helper()
	r := &rehearsal{t: t, seen: seen, clock: start}
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "> "):
			script := []string{strings.TrimPrefix(line, "> ")}
			out.WriteString(line + "\n")
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], ">   ") {
				i++
				script = append(script, strings.TrimPrefix(lines[i], ">   "))
				out.WriteString(lines[i] + "\n")
			}
			out.WriteString(r.line(script))
		case line == "---":
			finish(&out, r, ends)
			out.WriteString("\n---\n")
			r = &rehearsal{t: t, seen: seen, clock: start}
		case line == "" || strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
		}
	}
	finish(&out, r, ends)
	return out.String()
}

// finish writes the last line of a run.
func finish(out *strings.Builder, r *rehearsal, ends map[Outcome]bool) {
	ends[Outcome{Status: r.state.Status(), Reason: r.state.Reason()}] = true
	text := strings.TrimRight(out.String(), "\n")
	out.Reset()
	out.WriteString(text + "\n\n" + r.count())
}

// start is when every transcript begins.
var start = time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// rehearsal is a run under the eyes of the harness.
type rehearsal struct {
	t        tester
	seen     map[edge]bool
	clock    time.Time
	state    State
	events   []Event // those that were taken, as they are read back
	deadline time.Time
}

// line plays one event and returns what is to be said of it.
func (r *rehearsal) line(script []string) string {
	r.t.Helper()
	e := r.parse(script)
	if err := r.apply(e); err != nil {
		return "refused: " + err.Error() + "\n"
	}
	r.replay()
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %s", r.state.Status(), r.state.Phase)
	if d := r.state.Deadline(); !d.IsZero() && !d.Equal(r.deadline) {
		fmt.Fprintf(&out, ", until +%s", d.Sub(start))
		r.deadline = d
	}
	if r.state.Phase == Over {
		fmt.Fprintf(&out, ", %s", r.state.Reason())
	}
	out.WriteString("\n")
	if e, ok := e.(StepEvaluated); ok {
		for _, report := range e.Evaluation.Reports {
			if w := report.Would(); w != "" {
				fmt.Fprintf(&out, "  (%s %s)\n", report.Signal, w)
			}
		}
	}
	for _, effect := range Next(r.state) {
		fmt.Fprintf(&out, "  %s\n", say(effect))
	}
	return out.String()
}

// apply applies an event and checks what must hold after any.
func (r *rehearsal) apply(e Event) error {
	t := r.t
	t.Helper()
	before := snapshot(t, r.state)
	refused := Check(r.state, e)
	next := Apply(r.state, e)
	if after := snapshot(t, r.state); !bytes.Equal(before, after) {
		t.Fatalf("Apply of %s touched its argument:\nbefore %s\nafter  %s", e.Kind(), before, after)
	}
	if refused != nil {
		if !cmp.Equal(r.state, next) {
			t.Fatalf("%s was refused and changed the state:\n%s", e.Kind(), cmp.Diff(r.state, next))
		}
		return refused
	}
	step := edge{r.state.Phase, e.Kind(), next.Phase}
	if !inTable(step) {
		t.Fatalf("the table has no way from %s by %s to %s", step.from, step.on, step.to)
	}
	r.seen[step] = true
	r.events = append(r.events, reread(t, e))
	for _, broken := range invariants(next, r.events) {
		t.Fatalf("after %s: %s", e.Kind(), broken)
	}
	r.state = next
	return nil
}

// replay plays the run again from its first event, through the stored forms, and
// reads a snapshot back: both must be the run as it is.
func (r *rehearsal) replay() {
	t := r.t
	t.Helper()
	var again State
	for _, e := range r.events {
		again = Apply(again, e)
	}
	if diff := cmp.Diff(r.state, again); diff != "" {
		t.Fatalf("replayed from the start (-live +replayed):\n%s", diff)
	}
	restored, err := UnmarshalState(snapshot(t, r.state))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.state, restored); diff != "" {
		t.Fatalf("restored from a snapshot (-live +restored):\n%s", diff)
	}
	if diff := cmp.Diff(Next(r.state), Next(restored)); diff != "" {
		t.Fatalf("Next is no function of the state:\n%s", diff)
	}
}

func inTable(e edge) bool {
	return slices.ContainsFunc(Transitions, func(row Transition) bool {
		return row.From == e.from && row.On == e.on && slices.Contains(row.To, e.to)
	})
}

// count says how often the run was evaluated, and fails unless that is once for
// each step that is over and once for each pause.
func (r *rehearsal) count() string {
	r.t.Helper()
	steps := 0
	for range r.state.Steps() {
		steps++
	}
	evaluations := 0
	for _, e := range r.events {
		if _, ok := e.(StepEvaluated); ok {
			evaluations++
		}
	}
	if r.state.Phase != Over {
		r.t.Fatalf("the transcript leaves the run %s", r.state.Phase)
	}
	if evaluations != steps+r.state.Pauses {
		r.t.Errorf("%d steps and %d pauses were evaluated %d times", steps, r.state.Pauses, evaluations)
	}
	used := r.state.Usage
	estimated := ""
	if used.Estimated {
		estimated = ", in part estimated"
	}
	return fmt.Sprintf("= steps %d, pauses %d: evaluations %d; tokens %d in, %d out%s\n",
		steps, r.state.Pauses, evaluations, used.Input, used.Output, estimated)
}

func snapshot(t tester, s State) []byte {
	t.Helper()
	b, err := MarshalState(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reread returns the event as a journal would give it back.
func reread(t tester, e Event) Event {
	t.Helper()
	kind, payload, err := Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Unmarshal(kind, e.When(), payload)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, again, cmp.AllowUnexported(Stamp{})); diff != "" {
		t.Fatalf("%s, read back (-said +read):\n%s", kind, diff)
	}
	return again
}

// say puts an effect in words.
func say(e Effect) string {
	var said string
	switch e := e.(type) {
	case Claim:
		said = "find a worker"
	case CallModel:
		said = fmt.Sprintf("call the model for step %d, attempt %d", e.Step, e.Attempt)
		if !e.Tools {
			said += ", without tools"
		}
		if !e.NotBefore.IsZero() {
			said += fmt.Sprintf(", not before +%s", e.NotBefore.Sub(start))
		}
	case RunCall:
		said = fmt.Sprintf("run call %d: %s %s", e.Call, e.Tool, e.Args)
	case Ask:
		said = fmt.Sprintf("ask about the %s", e.About)
		if e.Call > 0 {
			said += fmt.Sprintf(" %d", e.Call)
		}
	case ReleaseAnswer:
		said = "release the answer"
	case Evaluate:
		said = fmt.Sprintf("evaluate step %d", e.Step)
		if e.Pause > 0 {
			said = fmt.Sprintf("evaluate pause %d, in step %d", e.Pause, e.Step)
		}
	case CutOff:
		said = "cut off what is under way"
	case Wait:
		said = "wait"
		if !e.Until.IsZero() {
			said += fmt.Sprintf(" until +%s", e.Until.Sub(start))
		}
	case End:
		said = fmt.Sprintf("end: %s, %s", e.Outcome.Status, e.Outcome.Reason)
		if e.Message != "" {
			said += fmt.Sprintf(", and say: %s", e.Message)
		}
	}
	var needs []string
	if o := e.Needs(); o.After > 0 {
		needs = append(needs, fmt.Sprintf("after %d", o.After))
	}
	if e.Needs().Fence {
		needs = append(needs, "fenced")
	}
	if needs != nil {
		said += " [" + strings.Join(needs, ", ") + "]"
	}
	return said
}
