package govern

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/tool"
	"github.com/stoplog/stoplog/internal/wire"
)

// Result is what came of a call.
type Result struct {
	// Decision is [Allowed] for a call that ran.
	Decision Decision
	// Text is what the model is told: of a call that ran, what the tool said, as
	// far as the guards let it through. It is valid UTF-8.
	Text string
	// Failed says that the call did not do what was asked.
	Failed bool
	// Screened is what the guards did to the tool's text: nothing (Allow), or
	// something was replaced, or all from some place on was withheld. Guard and
	// Rule made it so.
	Screened    guard.Verdict
	Guard, Rule string
}

// screen judges what a tool said, as a channel of its own, under the guards of
// requests: it is on its way to the model.
func (s *Session) screen(ctx context.Context, c Call, out ToolOutput) (Result, []guard.Decision) {
	r := Result{Decision: Allowed{}, Failed: out.Failed}
	if !utf8.ValidString(out.Text) || out.Before < 0 || out.After < 0 || out.Before > len(out.Text)-out.After {
		r.Text, r.Failed = "the tool answered with something that is not text", true
		return r, nil
	}
	stream := s.profile.results.Open(ctx, guard.Channel{
		Name: channelName(c, "result"), Side: guard.Request, Kind: guard.ToolResult, Role: "tool", Tool: c.Tool,
	})
	v := view{text: out.Text, from: int64(out.Before), to: int64(len(out.Text) - out.After)}
	v.take(stream.Write([]byte(out.Text)))
	if end := stream.Close(); out.Cut {
		// The text goes on where nobody has read it. What waits may be the start
		// of something that must not be shown, so it is not shown.
		v.watched(end)
	} else {
		v.take(end)
	}
	text := v.shown(&r)
	if len(text) > tool.MaxText {
		text = clip(text) + fmt.Sprintf("\n[cut: %d of %d bytes]", tool.MaxText, len(text))
	}
	if stop := stream.Stopped(); stop != nil && v.settled < v.to {
		r.Screened, r.Guard, r.Rule = stop.Verdict, stop.Guard, stop.Rule
		text = line(text, fmt.Sprintf("[the rest was withheld: guard %s, rule %s]", stop.Guard, stop.Rule))
	} else if v.settled < v.to {
		text = line(text, "[cut: the end is not shown]")
	}
	r.Text = line(text, out.Note)
	return r, v.decisions
}

// A view is the part of a text that is shown, and what was decided of all of it.
type view struct {
	text      string
	from, to  int64
	settled   int64
	edits     []guard.Edit
	decisions []guard.Decision
}

func (v *view) take(step guard.Step) {
	v.settled = step.Settled
	v.edits = append(v.edits, step.Edits...)
	v.decisions = append(v.decisions, step.Decisions...)
}

// watched takes what guards that have no say found at the end.
func (v *view) watched(step guard.Step) {
	for _, d := range step.Decisions {
		if d.Mode != guard.Enforce {
			v.decisions = append(v.decisions, d)
		}
	}
}

// shown is the text between from and to, as far as it is settled, with its
// edits. A span is replaced as a whole where any of it would be seen.
func (v *view) shown(r *Result) string {
	var b strings.Builder
	at, to := v.from, min(v.to, v.settled)
	var span guard.Edit // the edits of one span so far
	said := false
	for _, e := range v.edits {
		if e.Text == "" && e.Start == span.End {
			e.Text = span.Text
		} else {
			said = false
		}
		span = e
		if e.End <= at || e.Start >= to {
			continue
		}
		b.WriteString(v.text[at:max(at, e.Start)])
		if !said {
			said = true
			b.WriteString(e.Text)
		}
		at = max(at, min(e.End, to))
		if r.Screened == guard.Allow {
			r.Screened, r.Rule, r.Guard = guard.Redact, e.Rule, v.guardOf(e)
		}
	}
	if at < to {
		b.WriteString(v.text[at:to])
	}
	return b.String()
}

// guardOf is the guard whose rule names a span.
func (v *view) guardOf(e guard.Edit) string {
	for _, d := range v.decisions {
		if d.Mode == guard.Enforce && d.Rule == e.Rule {
			return d.Guard
		}
	}
	return ""
}

// clip cuts a text to what a model is shown, between runes.
func clip(text string) string {
	end := tool.MaxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// line puts a line of ours behind a text.
func line(text, note string) string {
	if note == "" || text == "" || strings.HasSuffix(text, "\n") {
		return text + note
	}
	return text + "\n" + note
}

func channelName(c Call, part string) string {
	return fmt.Sprintf("tool/%d/%d/%s", c.Step, c.Number, part)
}

// keep records what the guards decided of a call's result.
func (s *Session) keep(c Call, decisions []guard.Decision) error {
	if len(decisions) == 0 {
		return nil
	}
	ds := make([]wire.Decision, len(decisions))
	for i, d := range decisions {
		ds[i] = wire.Decision{Channel: channelName(c, "result"), Decision: d}
	}
	now := time.Now()
	var records []Record
	for _, f := range verdicts(ds) {
		records = append(records, Record{Run: s.cfg.Run, At: now, Fact: f})
	}
	if err := s.t.record(records...); err != nil {
		return fmt.Errorf("call %s: its verdicts were not recorded: %w", c.Tool, err)
	}
	return nil
}
