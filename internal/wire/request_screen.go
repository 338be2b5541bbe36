package wire

import (
	"github.com/stoplog/stoplog/guard"
)

// screenRequest judges every leaf, in order, until one may not be sent. What is
// known to be clean is not judged again.
func (b *document) screenRequest(clean *Clean) {
	role, ends := "", 0 // the end of what is known to be clean
	var part *cleaning
	for i := range b.leaves {
		l := &b.leaves[i]
		if l.from < ends {
			continue
		}
		if part != nil && l.from >= part.to {
			part.learn(b)
			part = nil
		}
		if part == nil && clean != nil && isPart(l) {
			if part = clean.part(b, l); part == nil {
				ends = l.to
				continue
			}
			role = ""
		}
		if l.node != nil && l.node.channel == "role" {
			role = string(b.content(b.doc, l))
		}
		if !b.screenLeaf(*l, role) {
			return
		}
	}
	if part != nil {
		part.learn(b)
	}
}

// screenLeaf judges a leaf, and reports whether the request may still be sent.
func (b *document) screenLeaf(l leaf, role string) bool {
	switch {
	case l.kind == Opaque || l.token == 'n' || l.token == 't' || l.token == 'f' || l.token == '{' && l.kind != JSON:
		return true
	case l.kind == JSON, l.kind == Text && l.token == '"':
		return b.say([]text{{leaf: l, name: b.path(l), kind: l.textKind(role)}}) < 0
	}
	return b.screenOther(l)
}

// screenOther judges a leaf that is no text. In one that the provider acts on
// nothing can be replaced.
func (b *document) screenOther(l leaf) bool {
	fixed := l.kind == ID || l.kind == Enum || l.kind == Number
	if l.kind == Text || fixed && l.kind == Number && l.token == '"' {
		l.kind, l.path, fixed = Unknown, l.node.path, false
	}
	if fixed {
		l.path = l.node.path
		r := b.screen(l.path, b.content(b.doc, &l))
		if r.stop != nil || r.edits != nil {
			stop := r.stop
			if stop == nil {
				stop = &guard.Stop{Verdict: guard.Deny, Guard: r.guard, Rule: r.rule}
			}
			b.outcome.stopped(l.path, stop)
			return false
		}
		return true
	}
	sp, err := b.whole(b.doc, &l)
	if err != nil {
		if r, ok := err.(*errRefused); ok && r.stop != nil {
			b.outcome.stopped(l.path, r.stop)
		}
		return false
	}
	if sp.to > 0 {
		b.splices = append(b.splices, sp)
	}
	return true
}
