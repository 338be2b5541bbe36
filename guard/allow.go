package guard

import "time"

// An Allowance is a person's word that something which a rule finds is no fault.
// The finding is recorded as before, and asks for nothing.
type Allowance struct {
	By    string    `json:"by"`    // who said so
	Why   string    `json:"why"`   //
	Until time.Time `json:"until"` // from then on it counts for nothing
}

// Allowed says who has allowed a finding; nil if nobody has. A finding is known by
// its rule and its fingerprint, so it is asked of findings alone that have one and
// whose end is known: what was cut at the hold limit is replaced before anybody
// knows what it is.
//
// Its answers do not change while a channel is judged, so that what leaves depends
// on the channel's text and not on when it came.
type Allowed func(Finding) *Allowance

// allow takes what a finding asks for away from it, if somebody has allowed it.
func (s *Stream) allow(f *Finding) *Allowance {
	if s.allowed == nil || f.End == Open || f.Fingerprint == "" {
		return nil
	}
	a := s.allowed(*f)
	if a != nil {
		f.Verdict = Allow
	}
	return a
}
