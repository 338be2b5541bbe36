package wire

import (
	"fmt"

	"github.com/stoplog/stoplog/internal/sse"
)

// leave emits a chunk, or keeps it if it may be the last.
func (d *openaiStream) leave(s *Stream, f *frame) {
	d.emitLast(s, nil)
	if d.finished+d.stopped(s) >= s.opt.Choices {
		d.last = f
		return
	}
	s.emit(f, nil)
}

func (d *openaiStream) emitLast(s *Stream, member []byte) {
	if d.last != nil {
		s.emit(d.last, member)
		d.last = nil
	}
}

// stopped counts the choices that a verdict ended.
func (d *openaiStream) stopped(s *Stream) int {
	n := 0
	for i, c := range d.choices {
		if s.lanes[i].ended && !c.finished {
			n++
		}
	}
	return n
}

func (d *openaiStream) end(s *Stream) {
	member := s.told()
	var tails [][]byte // chunks of our own
	for i, c := range d.choices {
		if s.lanes[i].ended {
			tails = append(tails, d.finish(c.index, "content_filter"))
		}
	}
	usage := d.usage
	if !s.opt.Usage {
		usage = nil
	}
	if d.last == nil && tails == nil && usage == nil && member != nil {
		tails = append(tails, d.chunk(""))
	}
	if usage != nil || len(tails) > 0 {
		d.emitLast(s, nil)
	} else {
		d.emitLast(s, member)
	}
	for i, t := range tails {
		if i == len(tails)-1 && usage == nil && member != nil {
			t = withMember(t, member)
		}
		s.out = sse.AppendEvent(s.out, "", t)
	}
	if usage != nil {
		s.emit(usage, member)
	}
	s.out = sse.AppendEvent(s.out, "", openaiDone)
}

// chunk is a chunk of our own with the given choice, if any.
func (d *openaiStream) chunk(choice string) []byte {
	if d.id == nil {
		d.id, d.created, d.model = []byte(`""`), []byte("0"), []byte(`""`)
	}
	return fmt.Appendf(nil, `{"id":%s,"object":"chat.completion.chunk","created":%s,"model":%s,"choices":[%s]}`, d.id, d.created, d.model, choice)
}

func (d *openaiStream) fail(s *Stream, reason string) {
	d.emitLast(s, nil)
	o := s.Outcome()
	s.out = sse.AppendEvent(s.out, "", appendOpenAIError(nil, Error{Message: reason, Type: failType(o), Code: string(o.Status), Run: s.opt.Run, Outcome: &o}))
}

// upstreamError passes on an error that the upstream sent in place of a chunk.
func (d *openaiStream) upstreamError(s *Stream, f *frame) error {
	s.outcome.failed("the upstream ended the answer with an error")
	s.decide(true)
	if s.allStopped() {
		d.end(s)
		return nil
	}
	d.emitLast(s, nil)
	s.emit(f, s.told())
	return nil
}

// appendOpenAIError appends an error body: error {message, type, param, code}.
func appendOpenAIError(dst []byte, e Error) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = quote(dst, e.Message)
	dst = append(dst, `,"type":`...)
	dst = quote(dst, e.Type)
	dst = append(dst, `,"param":null,"code":`...)
	dst = quote(dst, e.Code)
	dst = append(dst, '}')
	if e.Outcome != nil {
		dst = appendStoplog(append(dst, ','), e.Run, *e.Outcome)
	}
	return append(dst, '}')
}

func failType(o Outcome) string {
	if o.Status == UpstreamFailed {
		return "api_error"
	}
	return "invalid_request_error"
}
