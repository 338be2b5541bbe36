package wire

import "github.com/stoplog/stoplog/guard"

// Holding reports whether the answer stands where a person must approve what
// comes: nothing leaves, and nothing more is read, until LetGo.
func (s *Stream) Holding() bool {
	return s.opt.Hold && s.opt.Choices == 1 && s.outcome.stop != nil && s.outcome.stop.Verdict == guard.RequireApproval &&
		!s.outcome.refused && s.allStopped()
}

// LetGo ends the hold, and the answer, with what the client is told of it: the
// question to a person, if one was asked, and why. It returns what the client is
// sent now; what the upstream said meanwhile is written next.
func (s *Stream) LetGo(approval, why string) []byte {
	s.empty()
	s.opt.Hold = false
	s.outcome.approval, s.outcome.why = approval, why
	s.flush()
	return s.read()
}
