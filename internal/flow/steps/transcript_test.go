package steps

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/run"
)

var update = flag.Bool("update", false, "rewrite what transcripts say")

// TestTranscripts plays testdata/*.txt, which are meant to be read aloud. A line
// that begins with "> " is an event, or several (script_test.go has the grammar);
// under it stands what became of the run, where its steps stand, and what is to be
// done. -update writes what is so.
//
// After every event the run is replayed from its first one, through the stored
// forms, and must be the same; and Apply must not have touched its argument.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	kinds, outcomes, standings := map[string]bool{}, map[run.Outcome]bool{}, map[Standing]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := &rehearsal{t: t, clock: start}
			got := r.play(string(text))
			for _, e := range r.events {
				kinds[e.Kind()] = true
			}
			if r.state.Phase != Over {
				t.Errorf("the transcript ends before the run does")
			}
			outcomes[run.Outcome{Status: r.state.Then.Status, Reason: r.state.Then.Reason}] = true
			for _, p := range r.state.Steps {
				standings[p.Standing()] = true
			}
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
	for kind := range readers() {
		if !kinds[kind] {
			t.Errorf("no transcript has an event %s", kind)
		}
	}
	for _, s := range Standings {
		if s.Over() && !standings[s] {
			t.Errorf("in no transcript a step ends as %s", s)
		}
	}
	for _, o := range endings {
		if !outcomes[o] {
			t.Errorf("no transcript ends %s, %s", o.Status, o.Reason)
		}
	}
}

func readers() map[string]func([]byte, time.Time) (Event, error) { return kinds }

// endings are the ways in which a run can end.
var endings = []run.Outcome{
	{Status: run.StatusCompleted, Reason: run.ReasonCompleted},
	{Status: run.StatusBlocked, Reason: run.ReasonApprovalDenied},
	{Status: run.StatusBlocked, Reason: run.ReasonApprovalExpired},
	{Status: run.StatusBlocked, Reason: run.ReasonMaxIterations},
	{Status: run.StatusBlocked, Reason: ReasonVerdict},
	{Status: run.StatusBlocked, Reason: ReasonCondition},
	{Status: run.StatusBlocked, Reason: "signal_loop_detect"},
	{Status: run.StatusFailed, Reason: ReasonStepFailed},
	{Status: run.StatusFailed, Reason: ReasonSchemaInvalid},
	{Status: run.StatusFailed, Reason: ReasonObserverFailed},
	{Status: run.StatusFailed, Reason: run.ReasonTimeout},
	{Status: run.StatusFailed, Reason: run.ReasonBudgetExceeded},
	{Status: run.StatusFailed, Reason: run.ReasonInternalError},
	{Status: run.StatusCancelled, Reason: run.ReasonCancelled},
	{Status: run.StatusCancelled, Reason: run.ReasonAbandoned},
}

// start is when every transcript begins.
var start = time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)

// rehearsal is a run under the eyes of the harness.
type rehearsal struct {
	t      *testing.T
	clock  time.Time
	state  State
	events []Event // those that were taken, as they are read back
}

func (r *rehearsal) play(text string) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.HasPrefix(line, "#") {
			out.WriteString(line + "\n")
			continue
		}
		if !strings.HasPrefix(line, "> ") {
			continue
		}
		out.WriteString("\n" + line + "\n")
		var more []string
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], ">   ") {
			i++
			more = append(more, strings.TrimPrefix(lines[i], ">   "))
			out.WriteString(lines[i] + "\n")
		}
		out.WriteString(r.line(strings.TrimPrefix(line, "> "), more))
	}
	return out.String()
}

// line plays a line and returns what is to be said of it.
func (r *rehearsal) line(line string, more []string) string {
	for _, e := range r.parse(line, more) {
		if err := r.apply(e); err != nil {
			return "refused: " + err.Error() + "\n"
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %s", r.state.Status(), r.state.Phase)
	if r.state.Phase == Over {
		fmt.Fprintf(&out, ", %s", r.state.Reason())
	}
	for i, p := range r.state.Steps {
		if p.Stage == Idle {
			continue
		}
		fmt.Fprintf(&out, "; %s %s", r.state.Plan.Steps[i].ID, p.Standing())
		if p.Why != "" && p.Stage == Final {
			fmt.Fprintf(&out, " (%s)", p.Why)
		}
	}
	out.WriteString("\n")
	for _, e := range Next(r.state) {
		fmt.Fprintf(&out, "  %s\n", r.say(e))
	}
	return out.String()
}

// apply applies an event and checks what must hold after any.
func (r *rehearsal) apply(e Event) error {
	t := r.t
	t.Helper()
	before := form(t, r.state)
	refused := Check(r.state, e)
	next := Apply(r.state, e)
	if after := form(t, r.state); !bytes.Equal(before, after) {
		t.Fatalf("Apply of %s touched its argument:\nbefore %s\nafter  %s", e.Kind(), before, after)
	}
	if refused != nil {
		if !bytes.Equal(before, form(t, next)) {
			t.Fatalf("%s was refused and changed the state", e.Kind())
		}
		return refused
	}
	kind, payload, err := Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Unmarshal(kind, e.When(), payload)
	if err != nil {
		t.Fatal(err)
	}
	r.events = append(r.events, again)
	r.state = next
	var replayed State
	for _, e := range r.events {
		replayed = Apply(replayed, e)
	}
	if want, got := form(t, next), form(t, replayed); !bytes.Equal(want, got) {
		t.Fatalf("after %s a replay comes to another state:\n%s", e.Kind(), cmp.Diff(string(want), string(got)))
	}
	r.lawful(before, e)
	return nil
}

// lawful checks the laws that can be seen in a state.
func (r *rehearsal) lawful(_ []byte, e Event) {
	t, s := r.t, r.state
	t.Helper()
	for i, p := range s.Plan.Steps {
		step := s.Steps[i]
		if p.Irreversible && step.Started > 1 && !resolvedRetry(r.events, i+1) {
			t.Fatalf("after %s: %s is irreversible, and was started %d times", e.Kind(), p.ID, step.Started)
		}
		if _, ok := e.(StepStarted); ok && step.Stage == Going && !p.Handler && step.Back == 0 {
			for _, n := range p.After {
				if !s.Step(n).Lifts {
					t.Fatalf("%s runs, and %s did not let it", p.ID, s.Plan.step(n).ID)
				}
			}
		}
	}
	if s.Phase == Advancing && s.Held && len(Next(s)) == 0 && !slices.ContainsFunc(s.Steps, func(p *Step) bool { return p.Stage == Going }) {
		t.Fatalf("after %s: nothing is under way, and nothing is to be done", e.Kind())
	}
}

func resolvedRetry(events []Event, n int) bool {
	return slices.ContainsFunc(events, func(e Event) bool {
		r, ok := e.(Resolved)
		return ok && r.Step == n && r.Choice == run.Retry
	})
}

func form(t *testing.T, s State) []byte {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
