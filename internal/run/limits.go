package run

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Limits contain a run that goes nowhere. A limit of 0 is its default.
type Limits struct {
	// MaxIterations is how many steps the model gets tools for. After them it is
	// asked once more, without tools, to answer with what it has. Default 20.
	MaxIterations int
	// Timeout bounds the time for which workers hold the run. Default 10 minutes.
	Timeout time.Duration
	// Stall is how many times over the same calls may give the same results, in
	// cycles of up to four steps. Default 3; at least 2, for once is no cycle.
	Stall int
	// Malformed is how many answers in a row may be unusable. Default 3.
	Malformed int
	// ToolErrors is how many calls in a row may fail, looked at after each step.
	// Default 5.
	ToolErrors int
	// ModelAttempts is how often a step asks a provider that fails. Default 3.
	ModelAttempts int
}

func (l Limits) orDefault() Limits {
	return Limits{
		MaxIterations: cmp.Or(l.MaxIterations, 20),
		Timeout:       cmp.Or(l.Timeout, 10*time.Minute),
		Stall:         max(2, cmp.Or(l.Stall, 3)),
		Malformed:     cmp.Or(l.Malformed, 3),
		ToolErrors:    cmp.Or(l.ToolErrors, 5),
		ModelAttempts: cmp.Or(l.ModelAttempts, 3),
	}
}

// maxLost is how many workers may be lost in one step before the step is taken
// to be what kills them.
const maxLost = 8

// maxPeriod is the longest cycle that counts as going round in circles.
const maxPeriod = 4

// Streaks is what the limits remember of the steps before.
type Streaks struct {
	Malformed int // answers in a row that could not be used
	// Rounds has a digest of the calls and results of each of the newest steps,
	// as many as a stall can span; empty for one that cannot be part of a stall.
	Rounds     []string
	ToolErrors int // calls in a row that failed
}

// after returns the streaks with one more step.
func (k Streaks) after(s Step, l Limits) Streaks {
	k.Malformed++
	if !s.malformed() {
		k.Malformed = 0
	}
	for _, w := range s.Work {
		switch w.Result.Kind {
		case Errored:
			k.ToolErrors++
		case Returned:
			k.ToolErrors = 0
		}
	}
	rounds := append(slices.Clone(k.Rounds), s.round())
	k.Rounds = rounds[max(0, len(rounds)-maxPeriod*l.Stall):]
	return k
}

// exceeded returns the outcome of the first limit that has been reached; none
// lets the run go on.
func (k Streaks) exceeded(l Limits) Outcome {
	switch {
	case k.Malformed >= l.Malformed:
		return malformedOutput(k.Malformed)
	case k.ToolErrors >= l.ToolErrors:
		return toolErrors(k.ToolErrors)
	case k.cycles(l.Stall):
		return stalled(l)
	}
	return Outcome{}
}

// cycles reports whether the newest steps are one cycle, of a period up to
// maxPeriod, the given number of times over.
func (k Streaks) cycles(times int) bool {
	for period := 1; period <= maxPeriod && period*times <= len(k.Rounds); period++ {
		newest := k.Rounds[len(k.Rounds)-period*times:]
		if !slices.Contains(newest, "") && slices.Equal(newest[period:], newest[:len(newest)-period]) {
			return true
		}
	}
	return false
}

// malformed reports whether nothing of the answer could be used.
func (s Step) malformed() bool {
	if s.Unusable != "" {
		return true
	}
	for _, w := range s.Work {
		if w.Ruling != Malformed {
			return false
		}
	}
	return len(s.Work) > 0
}

// round is a digest of what the step did and saw, the same for the same calls,
// arguments and results in the same order. A step that made no call, or that
// asked a declared poller, has none: it cannot be part of a stall.
func (s Step) round() string {
	if len(s.Work) == 0 || slices.ContainsFunc(s.Work, func(w Work) bool { return w.Poller }) {
		return ""
	}
	h := sha256.New()
	for _, w := range s.Work {
		fmt.Fprintf(h, "%q %q %d %q\n", w.Tool, canonical(w.Args), w.Result.Kind, w.Result.Text)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// canonical returns JSON with members sorted and without spaces, so that the
// same arguments are the same however the model wrote them; what is not JSON
// stays as it is.
func canonical(args string) string {
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return args
	}
	if _, err := d.Token(); err != io.EOF {
		return args
	}
	out, err := json.Marshal(v)
	if err != nil {
		return args
	}
	return string(bytes.TrimSpace(out))
}

// backoff is how long to leave a provider alone after so many failures in a
// row: half a second, doubled with each, at most 30 seconds, and the second half
// of it left to chance, which comes as thousandths.
func backoff(failures, jitter int) time.Duration {
	d := 30 * time.Second
	if failures <= 6 {
		d = 500 * time.Millisecond << (failures - 1)
	}
	return d/2 + d/2*time.Duration(jitter)/1000
}
