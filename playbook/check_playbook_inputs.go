package playbook

import "slices"

var playbookInputsCheck = &CheckDoc{
	ID: "playbook-inputs", Summary: "a call that gives other inputs than the playbook declares",
	Explain: `A playbook declares its inputs; a call gives, under with, each that has no default, and no other.`,
	run: func(l *linter) {
		for _, s := range l.Steps {
			call, ok := s.Work.(*Call)
			if !ok {
				continue
			}
			b := l.callee(call)
			if b == nil || b.reading || b.playbook.flawed {
				continue
			}
			var declared []string
			for _, in := range b.playbook.Inputs {
				declared = append(declared, in.Name.Value)
				given := slices.ContainsFunc(call.With, func(w Named) bool { return w.Name.Value == in.Name.Value })
				if !given && in.Default == nil && !s.flawed {
					l.errorf(call.File.Span, "write with: {"+in.Name.Value+": EXPRESSION}", "step %q does not give playbook %q its input %q", s.ID.Value, call.File.Value, in.Name.Value)
				}
			}
			for _, w := range call.With {
				if !slices.Contains(declared, w.Name.Value) {
					l.errorf(w.Name.Span, suggestion(w.Name.Value, declared), "playbook %q declares no input %q", call.File.Value, w.Name.Value)
				}
			}
		}
	},
}
