package guard

// A Filter is a [Stream] that gives back the text that may leave. It is what a
// program needs that has one channel and no frames around it.
type Filter struct {
	stream *Stream
	out    int64 // what lies before it was given out, or replaced
}

// NewFilter returns a filter over a stream on which nothing was called yet.
func NewFilter(s *Stream) *Filter { return &Filter{stream: s} }

// Write judges p and appends to dst what is released now.
func (f *Filter) Write(dst, p []byte) ([]byte, Step) {
	return f.release(dst, f.stream.Write(p))
}

// Close ends the text and appends to dst what is released last.
func (f *Filter) Close(dst []byte) ([]byte, Step) {
	return f.release(dst, f.stream.Close())
}

func (f *Filter) release(dst []byte, step Step) ([]byte, Step) {
	for _, e := range step.Edits {
		dst = append(dst, f.stream.between(f.out, e.Start)...)
		dst = append(dst, e.Text...)
		f.out = e.End
	}
	dst = append(dst, f.stream.between(f.out, step.Settled)...)
	f.out = step.Settled
	return dst, step
}

// between is a part of the text that was not dropped yet.
func (s *Stream) between(from, to int64) []byte {
	if from == to {
		return nil
	}
	base := s.read - int64(len(s.text))
	return s.text[from-base : to-base]
}
