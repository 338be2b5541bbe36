package judge

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stoplog/stoplog/guard"
)

// An Asker judges one text. Its error means that it did not.
type Asker interface {
	Ask(context.Context, Question) ([]Finding, error)
}

// Question is a text to be judged.
type Question struct {
	Channel guard.Channel
	Before  string // what stands before it, at most a window; for context
	Text    string
}

// Finding is a part of a question's text that is not as it should be.
type Finding struct {
	Rule       string
	Start, End int // bytes of the text
	Verdict    guard.Verdict
	Severity   guard.Severity
}

// Options of a guard.
type Options struct {
	Name string
	// Strictest is the severest verdict that the asker gives; a severer one is an
	// error. It must be more than Allow for the guard to be of use.
	Strictest guard.Verdict
	// Whole judges a text when it has ended, in one piece.
	Whole bool
	// Ahead is how many windows of a channel may be in question at once; 0 is 2.
	// More hides more of a judge's delay, and holds as many more windows.
	Ahead int
	// InFlight is how many questions of all channels may be under way; 0 is 8.
	InFlight int
	// Timeout is how long an answer may take, all attempts together; 0 is 10
	// seconds.
	Timeout time.Duration
	// Key keys the fingerprints of findings.
	Key []byte
}

// Guard is a guard that asks.
type Guard struct {
	opt   Options
	asker Asker
	slots chan struct{}
}

// New makes a guard.
func New(asker Asker, opt Options) *Guard {
	if opt.Ahead <= 0 {
		opt.Ahead = 2
	}
	if opt.InFlight <= 0 {
		opt.InFlight = 8
	}
	if opt.Timeout <= 0 {
		opt.Timeout = 10 * time.Second
	}
	return &Guard{opt: opt, asker: asker, slots: make(chan struct{}, opt.InFlight)}
}

// Name implements [guard.Guard].
func (g *Guard) Name() string { return g.opt.Name }

// Strictest implements [guard.Strict].
func (g *Guard) Strictest() guard.Verdict { return g.opt.Strictest }

// Pace implements [guard.Paced].
func (g *Guard) Pace() guard.Pace {
	if g.opt.Whole {
		return guard.Whole
	}
	return guard.Windows
}

// Open implements [guard.Guard].
func (g *Guard) Open(ctx context.Context, ch guard.Channel) guard.Screen {
	return &screen{g: g, ctx: ctx, channel: ch}
}

// A screen judges one channel.
type screen struct {
	g       *Guard
	ctx     context.Context
	channel guard.Channel

	cut     cutter
	rest    []byte // read, and in no window yet
	from    int64  // where it begins in the channel's text
	before  string // the window before it
	asked   []*question
	settled int64
	found   []guard.Finding
}

// A question is a window that was asked about.
type question struct {
	from, to int64
	text     string
	answer   chan answer
}

type answer struct {
	found []Finding
	err   error
}

// Write implements [guard.Screen]. It waits for the windows that the text has left
// behind by as many as may be asked ahead.
func (s *screen) Write(p []byte) (guard.Progress, error) {
	s.found = s.found[:0]
	s.rest = append(s.rest, p...)
	if s.g.opt.Whole {
		return s.progress(), nil
	}
	rest := s.rest
	for n := s.cut.next(rest); n > 0; n = s.cut.next(rest) {
		s.judge(rest[:n])
		rest = rest[n:]
		if err := s.wait(s.g.opt.Ahead - 1); err != nil {
			return s.progress(), err
		}
	}
	s.rest = append(s.rest[:0], rest...)
	return s.progress(), nil
}

// Close implements [guard.Screen].
func (s *screen) Close() (guard.Progress, error) {
	s.found = s.found[:0]
	if len(s.rest) > 0 {
		s.judge(s.rest)
	}
	err := s.wait(0)
	return s.progress(), err
}

// maxWord is how long a field may be that says nothing: an id, a number, a name.
const maxWord = 512

// judge asks about the next window, unless it is a field that says nothing.
func (s *screen) judge(window []byte) {
	q := &question{from: s.from, to: s.from + int64(len(window)), text: string(window), answer: make(chan answer, 1)}
	asked := Question{Channel: s.channel, Before: s.before, Text: q.text}
	s.from = q.to
	if s.before = q.text; s.g.opt.Whole {
		s.before = ""
	}
	s.asked = append(s.asked, q)
	if s.channel.Kind == guard.Field && len(window) <= maxWord && !bytes.ContainsAny(window, " \n\t") {
		q.answer <- answer{}
		return
	}
	go func() { // it ends with the timeout at the latest
		found, err := s.g.put(s.ctx, asked)
		q.answer <- answer{found, err}
	}()
}

// wait waits until no more than most windows are in question.
func (s *screen) wait(most int) error {
	for len(s.asked) > most {
		q := s.asked[0]
		a := <-q.answer
		if a.err != nil {
			return fmt.Errorf("judge [%d, %d) of %s: %w", q.from, q.to, s.channel.Name, a.err)
		}
		for _, f := range a.found {
			s.found = append(s.found, s.g.finding(q, f))
		}
		s.settled, s.asked = q.to, s.asked[1:]
	}
	return nil
}

func (s *screen) progress() guard.Progress {
	return guard.Progress{Settled: s.settled, Findings: s.found}
}

// put has a question answered, as one of few at a time.
func (g *Guard) put(ctx context.Context, q Question) (found []Finding, err error) {
	ctx, stop := context.WithTimeoutCause(ctx, g.opt.Timeout, fmt.Errorf("no answer within %s", g.opt.Timeout))
	defer stop()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	found, err = g.asker.Ask(ctx, q)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		return nil, err
	}
	return g.checked(q, found)
}

// checked holds an answer to what a judge may say, and puts it in order.
func (g *Guard) checked(q Question, found []Finding) ([]Finding, error) {
	for _, f := range found {
		switch {
		case f.Start < 0 || f.End <= f.Start || f.End > len(q.Text):
			return nil, fmt.Errorf("the answer has a finding at [%d, %d) of a text of %d bytes", f.Start, f.End, len(q.Text))
		case f.Verdict > g.opt.Strictest:
			return nil, fmt.Errorf("the answer has the verdict %s, and the guard's severest is %s", f.Verdict, g.opt.Strictest)
		case f.Rule == "":
			return nil, errors.New("the answer has a finding without a rule")
		}
	}
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b Finding) int { return a.Start - b.Start })
	return found, nil
}

// finding is a finding of a window as one of the channel.
func (g *Guard) finding(q *question, f Finding) guard.Finding {
	mac := hmac.New(sha256.New, g.opt.Key)
	mac.Write([]byte(q.text[f.Start:f.End]))
	return guard.Finding{
		Guard: g.opt.Name, Rule: f.Rule, Start: q.from + int64(f.Start), End: q.from + int64(f.End),
		Severity: f.Severity, Verdict: f.Verdict, Fingerprint: hex.EncodeToString(mac.Sum(nil)[:8]),
	}
}
