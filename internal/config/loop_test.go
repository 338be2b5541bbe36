package config

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
	"github.com/stoplog/stoplog/internal/tool"
)

// TestSignalNames: a profile can enforce the signals that there are, and enforces
// by itself those that the evaluator would.
func TestSignalNames(t *testing.T) {
	e, err := signal.New(signal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range e.Evaluate(context.Background(), signal.History{}).Reports {
		all = append(all, r.Signal)
	}
	if diff := cmp.Diff(all, slices.Sorted(slices.Values(signalNames))); diff != "" {
		t.Errorf("(-there are +may be enforced):\n%s", diff)
	}
	if diff := cmp.Diff(signal.DefaultEnforced(), builtinLoop().Signals); diff != "" {
		t.Errorf("(-the evaluator's +built in):\n%s", diff)
	}
}

// TestToolNames: the built-in profile has a rule for each tool that there is, and
// lets run unasked what only reads.
func TestToolNames(t *testing.T) {
	dir, err := tool.OpenWorkdir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var want []ToolRule
	for _, have := range dir.Tools() {
		rule := always(have.Spec().Name, RequireApproval)
		if have.Spec().Effect == tool.Read {
			rule.Clauses[0].Rule = Allow
		}
		want = append(want, rule)
	}
	if runtime.GOOS != "linux" { // the rule for commands stands everywhere: a file may move
		want = append(want, always("run_command", RequireApproval))
	}
	if diff := cmp.Diff(want, builtinLoop().Tools); diff != "" {
		t.Errorf("(-there are +have a rule):\n%s", diff)
	}
}

// TestLimitsAreTheLoops: the built-in limits are those of a run that is given none.
func TestLimitsAreTheLoops(t *testing.T) {
	l := run.Apply(run.State{}, run.Created{}).Limits
	want := Limits{
		MaxIterations: l.MaxIterations, Timeout: l.Timeout,
		Stall: l.Stall, Malformed: l.Malformed, ToolErrors: l.ToolErrors,
	}
	if got := builtinLoop().Limits; got != want {
		t.Errorf("built in are %+v, the loop has %+v", got, want)
	}
}

// TestCaptures: what a profile may say is what the journal keeps to.
func TestCaptures(t *testing.T) {
	for _, c := range []journal.Capture{
		journal.CaptureNone, journal.CaptureMetadata, journal.CaptureRedacted, journal.CaptureFull,
	} {
		conf, err := Parse("f", []byte("version: 1\nprofiles: {default: {capture: "+string(c)+"}}\n"))
		if err != nil {
			t.Errorf("capture %s: %v", c, err)
		} else if got, err := journal.ParseCapture(conf.Profiles[0].Capture); got != c || err != nil {
			t.Errorf("capture %s becomes %s, %v", c, got, err)
		}
	}
}

// TestSystem reads a text as YAML lets one write it.
func TestSystem(t *testing.T) {
	for written, want := range map[string]string{
		"one line":                           "one line",
		"'quoted: #1'":                       "quoted: #1",
		`"a\tb\n c\n\n"`:                     "a\tb\n c",
		"|\n      a\n        b\n\n      c\n": "a\n  b\n\nc",
		"|+\n      a\n\n\n":                  "a",
		">-\n      a\n      b\n":             "a b",
		`"\u202e\u2028\U0001F642"`:           "\u202e\u2028\U0001F642",
		`" padded "`:                         " padded ",
		"[a]":                                "f:4:13: system must be a string, not a list",
		"12":                                 "f:4:13: system must be a string, not a number; quote it",
		"''":                                 "f:4:13: system is empty",
		`"a\rb"`:                             "f:4:13: system has a control character",
		`"a\u009bb"`:                         "f:4:13: system has a control character",
		`"\ufeffa"`:                          "f:4:13: system has a control character",
	} {
		c, err := Parse("f", []byte("version: 1\nprofiles:\n  default:\n    system: "+written+"\n"))
		if err != nil {
			if err.Error() != want {
				t.Errorf("%s: %v, want %s", written, err, want)
			}
			continue
		}
		if got := c.Profiles[0].System; got != want {
			t.Errorf("%s is read as %q, want %q", written, got, want)
		}
		samePrinted(t, c)
	}
}

// TestSecondPerson: no spelling of yes is taken for a no.
func TestSecondPerson(t *testing.T) {
	const refused = "f:2:49: second_person must be true or false, not "
	for written, want := range map[string]string{
		"true": "true", "True": "true", "TRUE": "true",
		"false": "false", "False": "false", "FALSE": "false",
		"yes": refused + "a string", "on": refused + "a string", `"true"`: refused + "a string",
		"1": refused + "a number", "null": refused + "nothing",
	} {
		c, err := Parse("f", []byte("version: 1\nprofiles: {default: {approvals: {second_person: "+written+"}}}\n"))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strconv.FormatBool(c.Profiles[0].Approvals.SecondPerson)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", written, got, want)
		}
	}
}

func TestLongSystem(t *testing.T) {
	const lines = 800
	text := strings.Repeat("    Each line of it takes the time of one line, and no more.\n", lines)
	c, err := Parse("f", []byte("version: 1\nprofiles:\n  default:\n   system: |\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(c.Profiles[0].System, "\n"); got != lines-1 {
		t.Errorf("it has %d line ends, want %d", got, lines-1)
	}
	samePrinted(t, c)
}

func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"24h": "24h", "90s": "1m30s", "3600s": "1h", "1h1s": "1h0m1s", "10m": "10m", "20h10m": "20h10m", "1s": "1s",
	} {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := short(d); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
		if again, err := time.ParseDuration(short(d)); again != d || err != nil {
			t.Errorf("%s is read again as %s, %v", text, again, err)
		}
	}
}
