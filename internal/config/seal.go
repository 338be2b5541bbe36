package config

import "strings"

// sealDecl says where the keys are that seal.
type sealDecl struct {
	key     at[string]
	command names
}

// byCommand opens the short form of a command: its words are those between spaces.
const byCommand = "command:"

// seal reads where the keys are that seal.
func (d decoder) seal(n node) (s sealDecl) {
	members, flawed := d.members(n, sealShape)
	if len(members) == 0 && !flawed {
		d.Errorf(n.Span, "write seal: {key: file:PATH}", "seal names no key")
	}
	for _, m := range members {
		switch v := m.Value; {
		case v.Kind == text && strings.HasPrefix(v.Text, byCommand) && strings.TrimSpace(v.Text[len(byCommand):]) != "":
			s.command = names{span: v.Span, set: true}
			for _, word := range strings.Fields(v.Text[len(byCommand):]) {
				s.command.value = append(s.command.value, at[string]{word, v.Span, true})
			}
		case v.Kind == mapping:
			within, _ := d.members(v, keyShape)
			for _, m := range within {
				s.command = d.words(m.Value, m.Key)
			}
		default:
			s.key = d.key(v)
		}
	}
	return s
}

// sealKey gives where the keys are.
func (s *resolver) sealKey(d sealDecl) Key {
	if d.key.set {
		k, _ := s.reference(d.key)
		return k
	}
	k := Key{At: d.command.span}
	for _, w := range d.command.value {
		k.Command = append(k.Command, w.value)
	}
	return k
}
