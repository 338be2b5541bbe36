package cassette

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/wire"
)

// A scrubber replaces what its chain finds. It judges as the door does, through
// package wire: what a stream says over many deltas is one text, the arguments
// of a tool are what their JSON says, and what comes out is a valid answer.
type scrubber struct {
	chain   *guard.Chain
	format  *wire.Format
	request *wire.Request // nil where nothing was asked: for a list of models
}

func (s *scrubber) options() wire.Options {
	opt := wire.Options{Context: context.Background(), Chain: s.chain, Usage: true}
	if s.request != nil {
		opt.Choices = s.request.Choices
	}
	return opt
}

// ask scrubs a request. It comes before the answer.
func (s *scrubber) ask(body []byte) (err error) {
	if len(body) == 0 {
		return nil
	}
	s.request, err = s.format.Request(s.options(), body)
	switch {
	case err != nil:
		return fmt.Errorf("the request cannot be scrubbed: %w", err)
	case s.request.Doc == nil:
		return fmt.Errorf("rule %s finds something in the request where nothing can be replaced", s.request.Outcome.Rule)
	}
	return nil
}

// heard is the body of an answer.
type heard struct {
	pieces []piece
	whole  bool
}

// answer scrubs an answer of a media type. It names the first rule that found
// something; where none did, what is heard is what came.
func (s *scrubber) answer(kind string, came heard) (out heard, rule string, err error) {
	switch kind {
	case eventStream:
		return s.stream(came)
	case document:
		return s.document(came)
	}
	return s.text(came)
}

// blankLine ends the last frame of a stream that ended without its blank line.
var blankLine = []byte("\n\n")

var errCut = errors.New("the recording ends here")

// stream scrubs a stream. Of one that breaks off the last half of a frame is left
// out: nobody reads it, and it cannot be judged.
func (s *scrubber) stream(came heard) (out heard, rule string, err error) {
	j := s.format.NewStream(s.options())
	out.whole = came.whole
	var wait time.Duration
	leaves := func(data []byte) {
		if len(data) > 0 {
			out.pieces = append(out.pieces, piece{wait, bytes.Clone(data)})
			wait = 0
		}
	}
	for i, p := range came.pieces {
		if j.Ended() { // the rest is no answer: no client reads it
			came.pieces = came.pieces[:i]
			break
		}
		wait += p.after
		leaves(j.Write(p.data))
	}
	if came.whole {
		leaves(j.Write(blankLine))
	}
	if j.Ended() || j.Complete() {
		leaves(j.Close(nil))
	} else {
		leaves(withoutLast(j.Close(errCut)))
	}
	if o := j.Outcome(); o.Status == wire.Blocked || o.Status == wire.ApprovalRequired {
		return out, "", fmt.Errorf("rule %s stops the answer", o.Rule)
	}
	if err := j.Refused(); err != nil {
		return out, "", fmt.Errorf("the answer cannot be scrubbed: %w", err)
	}
	if rule = first(j.Decisions()); rule != "" {
		return out, rule, nil
	}
	if !came.whole {
		came.pieces = wholeFrames(came.pieces)
	}
	return came, "", nil
}

// withoutLast leaves out the last frame of an answer that wire ended for want of
// its end: the error, by which a client learns of it.
func withoutLast(frames []byte) []byte {
	end := bytes.LastIndex(bytes.TrimSuffix(frames, blankLine), blankLine)
	if end < 0 {
		return nil
	}
	return frames[:end+len(blankLine)]
}

// wholeFrames is what came up to the end of the last frame.
func wholeFrames(pieces []piece) []piece {
	all := body(pieces)
	end := 0
	for _, blank := range []string{"\n\n", "\n\r\n", "\r\r"} {
		if i := bytes.LastIndex(all, []byte(blank)); i >= 0 {
			end = max(end, i+len(blank))
		}
	}
	var whole []piece
	for _, p := range pieces {
		if p.data = p.data[:min(len(p.data), end)]; len(p.data) > 0 {
			whole = append(whole, p)
		}
		end -= len(p.data)
	}
	return whole
}

// document scrubs an answer that is a JSON document.
func (s *scrubber) document(came heard) (out heard, rule string, err error) {
	if !came.whole {
		return out, "", errors.New("the answer broke off, and half a document cannot be scrubbed")
	}
	judge := s.format.Answer
	if s.request == nil {
		judge = s.format.Models
	}
	v := judge(s.options(), body(came.pieces))
	switch {
	case v.Outcome.Rule != "" && (v.Doc == nil || v.Outcome.Status != wire.Redacted):
		return out, "", fmt.Errorf("rule %s stops the answer", v.Outcome.Rule)
	case v.Doc == nil:
		return out, "", fmt.Errorf("the answer cannot be scrubbed: %s", v.Outcome.Reason)
	}
	if rule := first(v.Decisions); rule != "" {
		return heard{came.joined(v.Doc), true}, rule, nil
	}
	return came, "", nil
}

// text scrubs an answer that is no model's, such as the page of a proxy that
// failed.
func (s *scrubber) text(came heard) (out heard, rule string, err error) {
	text, rule, err := s.plain(body(came.pieces))
	if err != nil || rule == "" {
		return came, rule, err
	}
	return heard{came.joined(text), came.whole}, rule, nil
}

// plain scrubs a text.
func (s *scrubber) plain(text []byte) (out []byte, rule string, err error) {
	stream := s.chain.Open(context.Background(), guard.Channel{Name: "recording"})
	f := guard.NewFilter(stream)
	var ds []guard.Decision
	out, step := f.Write(nil, text)
	ds = append(ds, step.Decisions...)
	out, step = f.Close(out)
	if ds = append(ds, step.Decisions...); len(ds) > 0 {
		rule = ds[0].Rule
	}
	if stop := stream.Stopped(); stop != nil {
		err = fmt.Errorf("rule %s stops the answer", stop.Rule)
	}
	return out, rule, err
}

// joined is an answer in one piece, which comes when all of it had.
func (a heard) joined(data []byte) []piece {
	p := piece{data: data}
	for _, came := range a.pieces {
		p.after += came.after
	}
	if len(data) == 0 {
		return nil
	}
	return []piece{p}
}

// first names the first rule that found something.
func first(ds []wire.Decision) string {
	if len(ds) == 0 {
		return ""
	}
	return ds[0].Rule
}

// left says what is still found in an exchange that was scrubbed: in its answer
// as a client would read it, in its bytes, and in the file.
func (s *scrubber) left(kind string, a heard, file []byte) error {
	_, rule, err := s.answer(kind, a)
	if err != nil {
		return err
	}
	for _, text := range [][]byte{body(a.pieces), file} {
		if rule == "" {
			_, rule, err = s.plain(text)
		}
	}
	if rule != "" {
		return fmt.Errorf("rule %s still finds something in it", rule)
	}
	return err
}

// body is the bytes of pieces.
func body(pieces []piece) []byte {
	var all []byte
	for _, p := range pieces {
		all = append(all, p.data...)
	}
	return all
}
