package run

import (
	"fmt"
	"slices"
)

// Enumerations are spoken and stored by name.

func (p Phase) String() string      { return name(phaseNames[:], p, "phase") }
func (s Stage) String() string      { return name(stageNames[:], s, "stage") }
func (r ResultKind) String() string { return name(resultKindNames[:], r, "result kind") }
func (a About) String() string      { return name(aboutNames[:], a, "subject") }
func (c Choice) String() string     { return name(choiceNames[:], c, "choice") }
func (f Finish) String() string     { return name(finishNames[:], f, "finish") }
func (r Ruling) String() string     { return name(rulingNames[:], r, "ruling") }

func (p Phase) MarshalText() ([]byte, error)      { return []byte(p.String()), nil }
func (s Stage) MarshalText() ([]byte, error)      { return []byte(s.String()), nil }
func (r ResultKind) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
func (a About) MarshalText() ([]byte, error)      { return []byte(a.String()), nil }
func (c Choice) MarshalText() ([]byte, error)     { return []byte(c.String()), nil }
func (f Finish) MarshalText() ([]byte, error)     { return []byte(f.String()), nil }
func (r Ruling) MarshalText() ([]byte, error)     { return []byte(r.String()), nil }

func (p *Phase) UnmarshalText(b []byte) error { return parse(phaseNames[:], b, "phase", p) }
func (s *Stage) UnmarshalText(b []byte) error { return parse(stageNames[:], b, "stage", s) }
func (r *ResultKind) UnmarshalText(b []byte) error {
	return parse(resultKindNames[:], b, "result kind", r)
}
func (a *About) UnmarshalText(b []byte) error  { return parse(aboutNames[:], b, "subject", a) }
func (c *Choice) UnmarshalText(b []byte) error { return parse(choiceNames[:], b, "choice", c) }
func (f *Finish) UnmarshalText(b []byte) error { return parse(finishNames[:], b, "finish", f) }
func (r *Ruling) UnmarshalText(b []byte) error { return parse(rulingNames[:], b, "ruling", r) }

func name[T ~uint8](names []string, v T, what string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", what, v)
}

func parse[T ~uint8](names []string, b []byte, what string, into *T) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return fmt.Errorf("unknown %s %q: want one of %q", what, b, names)
	}
	*into = T(i)
	return nil
}
