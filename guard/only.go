package guard

import (
	"context"
	"slices"
)

// Only returns a guard that judges the channels of some kinds as g does, and has
// nothing to say of others.
func Only(g Guard, kinds ...Kind) Guard { return only{g, kinds} }

type only struct {
	Guard
	kinds []Kind
}

// Open implements [Guard].
func (o only) Open(ctx context.Context, ch Channel) Screen {
	s := &onlyScreen{only: o}
	s.Reset(ctx, ch)
	return s
}

// Strictest implements [Strict].
func (o only) Strictest() Verdict {
	if s, ok := o.Guard.(Strict); ok {
		return s.Strictest()
	}
	return Deny
}

// Pace implements [Paced].
func (o only) Pace() Pace {
	if p, ok := o.Guard.(Paced); ok {
		return p.Pace()
	}
	return Deltas
}

// onlyScreen is the guard's own screen, or, on a channel of another kind, settles
// all that it is shown.
type onlyScreen struct {
	only
	judges Screen // nil on a channel of another kind
	idle   Screen // the guard's own, to be used again
	read   int64
}

// Reset implements [Resetter].
func (s *onlyScreen) Reset(ctx context.Context, ch Channel) {
	if s.judges != nil {
		s.idle, s.judges = s.judges, nil
	}
	s.read = 0
	if !slices.Contains(s.kinds, ch.Kind) {
		return
	}
	if r, ok := s.idle.(Resetter); ok {
		r.Reset(ctx, ch)
		s.judges = s.idle
		return
	}
	s.judges = s.Guard.Open(ctx, ch)
}

// Write implements [Screen].
func (s *onlyScreen) Write(p []byte) (Progress, error) {
	if s.judges != nil {
		return s.judges.Write(p)
	}
	s.read += int64(len(p))
	return Progress{Settled: s.read}, nil
}

// Close implements [Screen].
func (s *onlyScreen) Close() (Progress, error) {
	if s.judges != nil {
		return s.judges.Close()
	}
	return Progress{Settled: s.read}, nil
}
