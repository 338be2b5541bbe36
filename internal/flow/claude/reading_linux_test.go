package claude

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/sandbox"
)

// transcript reads testdata/reading/NAME.txtar: what the program wrote, how it
// ended, what the gate saw, and what that comes to.
func transcript(t *testing.T, file string) (Evidence, string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := compile(json.RawMessage(verdictSchema))
	if err != nil {
		t.Fatal(err)
	}
	e := Evidence{Pin: pin, Tools: []string{"Read"}, MaxTokens: 1000, Check: checker(schema)}
	want := ""
	for _, f := range archive.Files {
		text := strings.TrimSpace(string(f.Data))
		switch f.Name {
		case "events":
			// As the driver does, with the bytes in two pieces.
			r := &running{question: &question{meter: newMeter(1 << 40)}}
			r.Write(f.Data[:len(f.Data)/2])
			r.Write(f.Data[len(f.Data)/2:])
			e.Events, e.Garbled = r.events, r.garbled
		case "process":
			e.Process, e.Idle = processOf(t, strings.Fields(text))
		case "gate":
			e.Gate = gateOf(t, strings.Fields(text))
		case "want":
			want = text
		}
	}
	e.Gate.Exceeded = e.Gate.Tokens > e.MaxTokens
	return e, want
}

// processOf reads `END [CODE] [left N] [idle]`.
func processOf(t *testing.T, words []string) (r sandbox.Result, idle bool) {
	t.Helper()
	number := func(i int) int {
		n, err := strconv.Atoi(words[i])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ends := map[string]sandbox.End{
		"exited": sandbox.Exited, "signalled": sandbox.Signalled, "timed_out": sandbox.TimedOut, "flooded": sandbox.Flooded,
		"cancelled": sandbox.Cancelled, "killed": sandbox.Killed,
	}
	end, ok := ends[words[0]]
	if !ok {
		t.Fatalf("unknown end %q", words[0])
	}
	r.End = end
	for i := 1; i < len(words); i++ {
		switch {
		case words[i] == "left":
			i++
			r.Left = number(i)
		case words[i] == "idle":
			idle = true
		case r.End == sandbox.Exited:
			r.Exit = number(i)
		default:
			r.Signal = number(i)
		}
	}
	return r, idle
}

// gateOf reads `[asked MODEL] [served MODEL] [tokens N] [stopped STATUS GUARD RULE]`.
func gateOf(t *testing.T, words []string) (g Gate) {
	t.Helper()
	for len(words) > 0 {
		switch words[0] {
		case "asked":
			g.Asked = append(g.Asked, words[1])
		case "served":
			g.Served = append(g.Served, words[1])
		case "tokens":
			n, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			g.Tokens = n
		case "stopped":
			g.Stopped = &Stopped{words[1], words[2], words[3], "made up"}
			words = words[2:]
		default:
			t.Fatalf("unknown word %q", words[0])
		}
		words = words[2:]
	}
	return g
}

// said is a reading as a transcript has it.
func (r Reading) said() string {
	if r.State == steps.Passed {
		return fmt.Sprintf("%s %s", r.State, r.Output)
	}
	s := fmt.Sprintf("%s %s", r.State, r.Reason)
	if r.Repairable {
		s += " (repairable)"
	}
	return s
}

func transcripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/reading/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	return files
}

func TestRead(t *testing.T) {
	for _, file := range transcripts(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			e, want := transcript(t, file)
			if got := Read(e).said(); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// Each condition is there for something: without it a transcript reads otherwise.
func TestReadNeedsEachCondition(t *testing.T) {
	all := conditions
	defer func() { conditions = all }()
	for i := range all {
		conditions = append(append([]func(Evidence) *Reading{}, all[:i]...), all[i+1:]...)
		missed := 0
		for _, file := range transcripts(t) {
			e, want := transcript(t, file)
			func() {
				defer func() {
					if recover() != nil { // what a later condition relies on
						missed++
					}
				}()
				if Read(e).said() != want {
					missed++
				}
			}()
		}
		if missed == 0 {
			t.Errorf("nothing is missed without condition %d", i)
		}
	}
}

// Nothing but exactly one transcript's kind of answer passes: cut anywhere, the
// output of a run that passes does not.
func TestReadCutShort(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/reading/pass.txtar")
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := transcript(t, "testdata/reading/pass.txtar")
	text := strings.TrimSpace(string(archive.Files[0].Data))
	for i := range len(text) {
		r := &running{question: &question{meter: newMeter(1 << 40)}}
		r.Write([]byte(text[:i]))
		r.take(r.line)
		e := whole
		e.Events, e.Garbled = r.events, r.garbled
		if got := Read(e); got.State == steps.Passed {
			t.Fatalf("cut at byte %d of %d it passes", i, len(text))
		}
	}
}

// Whatever a program writes, reading it comes to an end, and passes only with an
// answer that fits.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/reading/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
	schema, err := compile(json.RawMessage(verdictSchema))
	if err != nil {
		f.Fatal(err)
	}
	check := checker(schema)
	f.Fuzz(func(t *testing.T, out []byte) {
		r := &running{question: &question{meter: newMeter(1 << 40)}}
		r.Write(out)
		r.take(r.line)
		got := Read(Evidence{
			Pin: pin, Tools: []string{"Read"}, MaxTokens: 1000, Check: check, Events: r.events, Garbled: r.garbled,
			Process: sandbox.Result{End: sandbox.Exited}, Gate: Gate{Served: []string{pin}},
		})
		if !got.State.Over() {
			t.Errorf("it is %q", got.State)
		}
		if got.State == steps.Passed && check(got.Output) != nil {
			t.Errorf("passed with %s", got.Output)
		}
	})
}
