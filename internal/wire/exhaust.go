package wire

import (
	"fmt"
	"strconv"

	"github.com/stoplog/stoplog/internal/sse"
)

// Spent is how many tokens the answer took so far, as far as that is known: what
// the provider has reported, or an estimate from the text that came.
func (s *Stream) Spent() int64 { return s.outcome.spent().Output }

// Exhaust ends an answer for which there is no more budget: what is held is
// decided, what may leave leaves, a tool call that leaves whole and is not whole
// does not, and the answer ends as one that came to its length, with its usage.
// The envelope is whose budget it is, the reason is for people. What is returned is the stream's until its next call.
func (s *Stream) Exhaust(envelope, reason string) []byte {
	s.out = s.out[:0]
	if s.ended {
		return nil
	}
	s.outcome.spentOut = &Outcome{Status: BudgetExceeded, Guard: "budget", Rule: envelope, Reason: reason}
	s.decide(true)
	if d, ok := s.dialect.(interface{ exhaust(*Stream) }); ok {
		d.exhaust(s)
	} else {
		s.dialect.fail(s, reason)
	}
	return s.out
}

// exhaust ends every choice that has not ended: by a verdict as one that was
// filtered, the others as cut off at their length.
func (d *openaiStream) exhaust(s *Stream) {
	d.emitLast(s, nil)
	member := s.told()
	for i, c := range d.choices {
		if c.finished && !s.lanes[i].ended {
			continue
		}
		finish := "length"
		if s.lanes[i].stop {
			finish = "content_filter"
		}
		s.out = sse.AppendEvent(s.out, "", d.finish(c.index, finish))
	}
	if d.choices == nil {
		s.out = sse.AppendEvent(s.out, "", d.finish(0, "length"))
	}
	last := d.chunk("")
	if s.opt.Usage {
		u := s.outcome.spent()
		last = withMember(last, fmt.Appendf(nil, `"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, u.Input, u.Output, sum(u.Input, u.Output)))
	}
	if s.opt.Usage || member != nil {
		if member != nil {
			last = withMember(last, member)
		}
		s.out = sse.AppendEvent(s.out, "", last)
	}
	s.out = sse.AppendEvent(s.out, "", openaiDone)
}

// finish is a chunk of our own that ends a choice.
func (d *openaiStream) finish(index int64, reason string) []byte {
	return d.chunk(`{"index":` + strconv.FormatInt(index, 10) + `,"delta":{},"logprobs":null,"finish_reason":"` + reason + `"}`)
}

// exhaust ends the message as one that came to its length; one that a verdict
// ended ends as that.
func (d *anthropicStream) exhaust(s *Stream) {
	switch {
	case d.message == 0:
		d.fail(s, s.outcome.spentOut.Reason)
	case s.lane(0).ended && s.lane(0).stop:
		d.end(s)
	case d.open:
		d.closeBlock(s)
		d.finish(s, "max_tokens")
	}
}

// finish ends the message.
func (d *anthropicStream) finish(s *Stream, reason string) {
	o := s.Outcome()
	delta := fmt.Appendf(nil, `{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, reason, o.Usage.Output)
	s.out = sse.AppendEvent(s.out, "message_delta", withMember(delta, appendStoplog(nil, s.opt.Run, o)))
	s.out = sse.AppendEvent(s.out, "message_stop", []byte(`{"type":"message_stop"}`))
}
