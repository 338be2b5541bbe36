package chat

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// An Item is an event and its place in the story.
type Item struct {
	At    Position
	Event Event
}

// A Reader turns the records of one run, in order, into the events that its
// readers see. It is a fold: it asks no clock and no store.
type Reader struct {
	row   journal.Run
	state run.State

	shown    map[string]int64  // of each channel of the attempt: the end of what was shown
	text     string            // of the answer, as far as it was shown
	withheld run.ModelWithheld // the guard that stopped the step; zero if none did
	gone     bool              // a payload was purged: the rest cannot be told
}

// NewReader returns the reader of a run, given its row.
func NewReader(row journal.Run) *Reader { return &Reader{row: row} }

// State is the run as it stands behind the last record.
func (r *Reader) State() run.State { return r.state }

// Take returns what the next record shows. What was purged shows nothing; that
// the run has ended, and how, is on its row and shows all the same.
func (r *Reader) Take(rec journal.Record) ([]Item, error) {
	if !rec.Purged.IsZero() {
		r.gone = true
	}
	if r.gone {
		return r.place(rec, r.remains(rec)), nil
	}
	events, err := r.read(rec)
	if err != nil {
		return nil, fmt.Errorf("event %d of %s: %w", rec.Seq, rec.Ref.Run, err)
	}
	return r.place(rec, events), nil
}

// place gives events their positions. The last one's is the record's.
func (r *Reader) place(rec journal.Record, events []Event) []Item {
	items := make([]Item, len(events))
	for i, e := range events {
		items[i] = Item{At: Position{Seq: rec.Seq, Part: i + 1}, Event: e}
	}
	if n := len(items); n > 0 {
		items[n-1].At.Part = 0
	}
	return items
}

// remains is what can be told of a run of which something was purged.
func (r *Reader) remains(rec journal.Record) []Event {
	switch {
	case rec.Seq == 1:
		return []Event{r.opening()}
	case rec.Kind == run.Ended{}.Kind():
		return []Event{r.done(outcome{status: run.Status(r.row.Status), reason: run.Reason(r.row.Reason)})}
	}
	return nil
}

func (r *Reader) opening() Run {
	return Run{ID: string(r.row.Run), Profile: r.row.Profile, Session: string(r.row.Session)}
}

// read turns a record into events, by whose it is.
func (r *Reader) read(rec journal.Record) ([]Event, error) {
	switch {
	case rec.Kind == journal.TextReleased:
		return r.released(rec)
	case rec.Kind == journal.RequestVerdict:
		return r.verdict(rec)
	case !isRun(rec.Kind):
		return nil, nil // somebody's own bookkeeping
	}
	e, err := run.Unmarshal(rec.Kind, rec.At, rec.Payload)
	if err != nil {
		return nil, err
	}
	if run.Check(r.state, e) != nil {
		return nil, nil // it came too late, and changed nothing
	}
	before := r.state
	r.state = run.Apply(before, e)
	return r.tell(e, before), nil
}

// runKinds are the kinds of event that a run's state is made of.
var runKinds = func() map[string]bool {
	kinds := map[string]bool{}
	for _, t := range run.Transitions {
		kinds[t.On] = true
	}
	return kinds
}()

func isRun(kind string) bool { return runKinds[kind] }

// released shows a segment of text. What a channel has shown is not shown again.
func (r *Reader) released(rec journal.Record) ([]Event, error) {
	var seg journal.Released
	if err := rec.Decode(&seg); err != nil {
		return nil, err
	}
	if seg.Step != r.state.Step.Number || seg.Attempt != r.state.Step.Attempt {
		return nil, nil // of an attempt that is over
	}
	return r.show(seg.Channel, seg.Start, seg.Text), nil
}

// live shows text that the log does not have yet. Text of another attempt, and
// text with a gap before it, is left to the log.
func (r *Reader) live(d Delta) []Item {
	if d.Step != r.state.Step.Number || d.Attempt != r.state.Step.Attempt || d.Start > r.shown[d.Channel] {
		return nil
	}
	var items []Item
	for _, e := range r.show(d.Channel, d.Start, d.Text) {
		items = append(items, Item{Event: e})
	}
	return items
}

// show shows what of a text was not shown yet.
func (r *Reader) show(channel string, start int64, text string) []Event {
	end := r.shown[channel]
	if skip := end - start; skip > 0 {
		text = text[min(skip, int64(len(text))):]
		start = end
	}
	if text == "" {
		return nil
	}
	if r.shown == nil {
		r.shown = map[string]int64{}
	}
	r.shown[channel] = start + int64(len(text))
	if Answers(channel) {
		r.text += text
	}
	return []Event{Delta{
		Step: r.state.Step.Number, Attempt: r.state.Step.Attempt,
		Channel: channel, Start: start, Text: text,
	}}
}

// verdict shows what a guard has redacted, and what a person let pass. What it has stopped shows with the
// run's own record of that.
func (r *Reader) verdict(rec journal.Record) ([]Event, error) {
	var v journal.Verdict
	if err := rec.Decode(&v); err != nil {
		return nil, err
	}
	if v.Allowed != nil {
		return []Event{Verdict{Guard: v.Guard, Rule: v.Rule, Status: StatusAllowed, Channel: v.Channel, Allowed: (*Allowed)(v.Allowed)}}, nil
	}
	if v.Mode != "enforce" || v.Verdict != "redact" {
		return nil, nil
	}
	return []Event{Verdict{Guard: v.Guard, Rule: v.Rule, Status: StatusRedacted, Channel: v.Channel}}, nil
}

// tell says what an event of the run, which has been applied, shows.
func (r *Reader) tell(e run.Event, before run.State) (events []Event) {
	switch e := e.(type) {
	case run.Created:
		return []Event{r.opening()}
	case run.ModelStarted:
		events = r.begin(before)
	case run.ModelAnswered:
		events = r.rest(e.Answer.Text)
	case run.AnswerReleased:
		events = r.rest(e.Answer.Text)
		r.withheld = run.ModelWithheld{}
	case run.ModelWithheld:
		r.withheld = e
		events = append(r.rest(e.Text), stopped(e))
	case run.Asked:
		events = r.asked(e)
	case run.Ended:
		return []Event{r.done(r.outcome())}
	}
	events = append(events, changed(before, r.state)...)
	if r.state.Phase == run.Waiting && before.Phase != run.Waiting {
		events = append(events, r.done(r.outcome()))
	}
	return events
}

// begin opens a step, or another attempt at it.
func (r *Reader) begin(before run.State) (events []Event) {
	step := before.Step
	switch {
	case step.Attempt == 0:
		events = []Event{Step{Step: step.Number}}
	case len(r.shown) > 0:
		events = []Event{Superseded{Step: step.Number, Attempt: step.Attempt}}
	}
	r.shown, r.text, r.withheld = nil, "", run.ModelWithheld{}
	return events
}

// rest shows what of an answer was released and has no segment.
func (r *Reader) rest(text string) []Event {
	if rest, ok := strings.CutPrefix(text, r.text); ok {
		return r.show(TextChannel, r.shown[TextChannel], rest)
	}
	return nil
}

// stopped is the verdict of a guard that stopped a model call.
func stopped(e run.ModelWithheld) Verdict {
	v := Verdict{Guard: e.Guard, Rule: e.Rule, Status: StatusApproval}
	if e.Deny {
		v.Status = StatusBlocked
	}
	if !e.Request {
		v.Channel = TextChannel
	}
	return v
}

// changed shows how far the calls of a step have come since before.
func changed(before, after run.State) (events []Event) {
	old := before.Step
	if old.Number != after.Step.Number {
		return nil
	}
	for i, w := range after.Step.Work {
		if i >= len(old.Work) {
			t := toolOf(after.Step.Number, i+1, w)
			t.Args = w.Args
			events = append(events, t)
		} else if o := old.Work[i]; o.Stage != w.Stage || o.Result != w.Result {
			events = append(events, toolOf(after.Step.Number, i+1, w))
		}
	}
	return events
}

func toolOf(step, call int, w run.Work) Tool {
	t := Tool{Step: step, Call: call, Tool: w.Tool}
	switch w.Stage {
	case run.Held:
		t.State = ToolHeld
	case run.Due:
		t.State = ToolDue
	case run.Running:
		t.State = ToolRunning
	case run.InDoubt:
		t.State = ToolInDoubt
	default:
		t.State = map[run.ResultKind]ToolState{
			run.Returned: ToolDone, run.Errored: ToolFailed, run.NotRun: ToolNotRun, run.Lost: ToolLost,
		}[w.Result.Kind]
		t.Result = w.Result.Text
	}
	return t
}

// asked shows a question that was put to a person.
func (r *Reader) asked(e run.Asked) []Event {
	q := run.Question{About: e.About, Call: e.Call, ID: e.ID, Digest: e.Digest, Expires: e.Expires}
	if e.About == run.AboutReply {
		return []Event{r.question(q)}
	}
	return []Event{r.approval(q)}
}

func (r *Reader) question(q run.Question) Question {
	return Question{
		ID: q.ID, Digest: q.Digest, Text: asks(workOf(r.state, q.Call).Args),
		Step: r.state.Step.Number, Call: q.Call, Expires: q.Expires,
	}
}

func (r *Reader) approval(q run.Question) Approval {
	return Approval{
		ID: q.ID, Digest: q.Digest, What: r.what(q), About: q.About.String(),
		Step: r.state.Step.Number, Call: q.Call, Expires: q.Expires,
	}
}

// what says in a line what an approval is about.
func (r *Reader) what(q run.Question) string {
	switch q.About {
	case run.AboutCall:
		w := workOf(r.state, q.Call)
		return w.Tool + " " + w.Args
	case run.AboutRequest:
		return fmt.Sprintf("send what guard %s holds back to the model (rule %s)", r.withheld.Guard, r.withheld.Rule)
	case run.AboutAnswer:
		return fmt.Sprintf("let out the answer that guard %s holds back (rule %s)", r.withheld.Guard, r.withheld.Rule)
	}
	return fmt.Sprintf("go on after step %d, which the evaluator put in doubt", r.state.Step.Number)
}

// asks is the text of a question of the model's: member "question" of the
// arguments, or all of them where there is none.
func asks(args string) string {
	var a struct {
		Question string `json:"question"`
	}
	if json.Unmarshal([]byte(args), &a) != nil || a.Question == "" {
		return args
	}
	return a.Question
}
