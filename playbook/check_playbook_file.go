package playbook

import (
	"io/fs"
	"path"
)

var playbookFileCheck = &CheckDoc{
	ID: "playbook-file", Summary: "a playbook that is called and is not there, or does not check",
	Explain: `playbook: FILE is relative to the folder of the file that calls it, and stays in the root. What is called is checked as if it were run alone: a call does not lend it a pause.`,
	run: func(l *linter) {
		for _, s := range l.Steps {
			call, ok := s.Work.(*Call)
			if !ok || !call.File.Written() {
				continue
			}
			at := l.callPath(call)
			if at == "" {
				l.errorf(call.File.Span, "write it relative to this file, below the root", "playbook %q leads out of the root", call.File.Value)
				continue
			}
			if l.lib.options.Tree == nil {
				continue
			}
			b, err := l.lib.called(at)
			switch {
			case err != nil && missing(err):
				l.errorf(call.File.Span, "it is relative to the folder of this file", "there is no playbook %q", call.File.Value)
			case err != nil:
				l.errorf(call.File.Span, "", "playbook %q: %v", call.File.Value, err)
			case b.reading: // in a circle, which another check reports
			default:
				if bad := b.findings.Errors(); len(bad) > 0 {
					l.errorf(call.File.Span, "see `stoplog lint "+l.lib.prefix+at+"`", "playbook %q does not check: %s", call.File.Value, bad[0])
				}
			}
		}
	},
}

// callPath is the path of a called playbook in the tree; empty if it leads out
// of it.
func (l *linter) callPath(call *Call) string {
	at := path.Join(path.Dir(l.path), call.File.Value)
	if path.IsAbs(call.File.Value) || !fs.ValidPath(at) || at == "." {
		return ""
	}
	return at
}

// callee gives a called playbook; nil if it cannot be read.
func (l *linter) callee(call *Call) *book {
	at := l.callPath(call)
	if l.lib.options.Tree == nil || at == "" || !call.File.Written() {
		return nil
	}
	b, err := l.lib.called(at)
	if err != nil {
		return nil
	}
	return b
}
