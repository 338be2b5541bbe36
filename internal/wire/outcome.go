package wire

import (
	"bytes"
	"cmp"

	"github.com/stoplog/stoplog/guard"
)

// Status is what became of a request, as clients and records see it.
type Status string

const (
	Allowed          Status = "completed"
	Redacted         Status = "redacted"
	Blocked          Status = "guardrail_blocked"
	ApprovalRequired Status = "guardrail_approval_required"
	BudgetExceeded   Status = "budget_exceeded"
	UpstreamFailed   Status = "upstream_failed"
	Cancelled        Status = "cancelled" // the caller left
)

// Outcome says how a request ended.
type Outcome struct {
	Status Status
	// Guard and Rule made it so; empty if none did.
	Guard, Rule string
	// Reason is a sentence for people, empty where the status says it all.
	Reason string
	// Approval is the question to a person that the withheld rest waits for; empty
	// if there is none.
	Approval string
	// WouldHold is the most bytes of a text that guards in shadow would have held
	// back, as far as that was looked at (guard.Stream.WouldHold).
	WouldHold int64
	Usage     Usage
}

// outcome gathers what decides a response's Outcome. Which of several findings
// names it depends on where they are, not on when they were made.
type outcome struct {
	stop      *guard.Stop
	stopAt    string // the stop's channel
	finding   *guard.Finding
	findAt    string
	prior     *Outcome // of the request
	approval  string   // the question to a person
	why       string   // what there is to say of it
	failure   string
	refused   bool     // the failure is a guard's doing
	spentOut  *Outcome // there is no more budget for the answer
	wouldHold int64
	asked     int64 // the size of the request, in tokens, estimated
	report    report
	past      Usage // of messages of the answer before the one that is reported
	textSize  int64 // bytes of answer text that came
}

func (o *outcome) stopped(channel string, s *guard.Stop) {
	if o.stop == nil || s.Verdict > o.stop.Verdict || s.Verdict == o.stop.Verdict && channel < o.stopAt {
		o.stop, o.stopAt = s, channel
	}
}

func (o *outcome) redacted(channel string, f guard.Finding) {
	if o.finding == nil || channel < o.findAt || channel == o.findAt && f.Start < o.finding.Start {
		o.finding, o.findAt = &f, channel
	}
}

// notAsked is the reason of an answer that a person would have to approve, where
// nobody is asked.
const notAsked = "the rest was withheld, and nobody can approve it: answers are not kept here"

// failed notes why the upstream's answer could not be passed on; the first
// reason stays.
func (o *outcome) failed(reason string) {
	if o.failure == "" {
		o.failure = reason
	}
}

// result is how it ended, if it ended now.
func (o *outcome) result() Outcome {
	out := Outcome{Status: Allowed, WouldHold: o.wouldHold, Usage: o.spent()}
	switch {
	case o.stop != nil:
		out.Status, out.Guard, out.Rule = Blocked, o.stop.Guard, o.stop.Rule
		if o.stop.Verdict == guard.RequireApproval {
			out.Status = ApprovalRequired
			out.Approval, out.Reason = o.approval, cmp.Or(o.why, notAsked)
		}
		if o.failure != "" && o.refused {
			out.Reason = o.failure
		}
	case o.failure != "":
		out.Status, out.Reason = UpstreamFailed, o.failure
	case o.spentOut != nil:
		out.Status, out.Guard, out.Rule, out.Reason = o.spentOut.Status, o.spentOut.Guard, o.spentOut.Rule, o.spentOut.Reason
	case o.finding != nil:
		out.Status, out.Guard, out.Rule = Redacted, o.finding.Guard, o.finding.Rule
	case o.prior != nil:
		out.Status, out.Guard, out.Rule = Redacted, o.prior.Guard, o.prior.Rule
	}
	return out
}

// told is the member that tells a client what happened; nil where that was
// nothing, and of a run without a name.
func (o Options) told(out Outcome) []byte {
	if o.Run == "" || out.Status == Allowed {
		return nil
	}
	return appendStoplog(nil, o.Run, out)
}

// appendStoplog appends the member that tells a client what happened, without
// a comma before it: "stoplog":{…}.
func appendStoplog(dst []byte, run string, o Outcome) []byte {
	dst = append(dst, `"stoplog":{"run":`...)
	dst = quote(dst, run)
	for _, m := range [...]struct{ name, value string }{
		{"status", string(o.Status)}, {"guard", o.Guard}, {"rule", o.Rule}, {"approval", o.Approval}, {"reason", o.Reason},
	} {
		if m.value != "" {
			dst = append(dst, ',', '"')
			dst = append(dst, m.name...)
			dst = append(dst, '"', ':')
			dst = quote(dst, m.value)
		}
	}
	return append(dst, '}')
}

// withMember returns a JSON object with a member added at its end; a document
// that is no object has no place for one and stays.
func withMember(doc, member []byte) []byte {
	if !isObject(doc) {
		return doc
	}
	return applySplices(nil, doc, []splice{adding(doc, len(doc), string(member))})
}

// isObject reports whether a valid document is an object.
func isObject(doc []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(doc, " \t\r\n"), []byte("{")) }

// adding is the splice that adds a member to the object that ends before to,
// but for space.
func adding(doc []byte, to int, member string) splice {
	end := len(bytes.TrimRight(doc[:to], " \t\r\n")) - 1 // the brace
	if last := bytes.TrimRight(doc[:end], " \t\r\n"); last[len(last)-1] != '{' {
		member = "," + member
	}
	return splice{end, end, []byte(member)}
}
