package playbook

import (
	"path"
	"slices"
	"strings"
)

// SafeWrite are the folders that a step may write to without a reason.
var SafeWrite = []string{"adr", "docs", "playbooks", "tmp"}

var safeWriteCheck = &CheckDoc{
	ID: "safe-write", Summary: "a scope that may write outside adr, docs, playbooks and tmp",
	Explain: `What a step can write, a model or a program in it can leave behind for the next one to run. adr/**, docs/**, playbooks/** and tmp/** are read by people; the rest of a repository is run by machines. A warning here; the review of a change refuses it without an override that is on record.`,
	run: func(l *linter) {
		for _, s := range l.scopes() {
			for _, t := range s.CanWrite.Value {
				if why, _ := escapes("can_write", t.Value); why != "" {
					continue // reported
				}
				first, _, below := strings.Cut(strings.TrimPrefix(path.Clean(t.Value), "./"), "/")
				if !below || !slices.Contains(SafeWrite, first) {
					l.warnf(t.Span, "write below adr/, docs/, playbooks/ or tmp/", "can_write: %q is outside of what is safe to write", t.Value)
				}
			}
		}
	},
}
