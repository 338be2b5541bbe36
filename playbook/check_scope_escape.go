package playbook

import (
	"path"
	"strings"
)

var scopeEscapeCheck = &CheckDoc{
	ID: "scope-escape", Summary: "a scope that leads out of the root",
	Explain: `The patterns of can_read and can_write are relative to the root, the folder in which the run works, and stay in it: no .., no leading /, no ~. A program in can_run is ./PATH below the root, a name that is looked up, or an absolute path. can_reach lists hosts as NAME:PORT. A prompt root stays in the root too.`,
	run: func(l *linter) {
		for _, s := range l.scopes() {
			for _, part := range s.lists() {
				for _, t := range part.list.Value {
					why, hint := escapes(part.name, t.Value)
					if why != "" {
						l.errorf(t.Span, hint, "%s: %q %s", part.name, t.Value, why)
					}
				}
			}
		}
		for _, t := range l.PromptRoots.Value {
			if why, hint := escapes("prompt_roots", t.Value); why != "" {
				l.errorf(t.Span, hint, "prompt_roots: %q %s", t.Value, why)
			}
		}
	},
}

// scopes gives those of steps and observers.
func (l *linter) scopes() (all []*Scope) {
	for _, s := range l.Steps {
		if s.Scope != nil {
			all = append(all, s.Scope)
		}
		if s.Observer != nil && s.Observer.Scope != nil {
			all = append(all, s.Observer.Scope)
		}
	}
	return all
}

// escapes says why an entry of a scope is refused, and what to do; empty if it
// is not.
func escapes(list, entry string) (why, hint string) {
	if list == "can_reach" {
		return unreachable(entry)
	}
	const inside = "write it relative to the root"
	switch {
	case strings.ContainsAny(entry, "\\"):
		return "has a backslash", "separate with /"
	case strings.HasPrefix(entry, "~"):
		return "leads to a home", inside
	case path.IsAbs(entry) && list != "can_run":
		return "leads out of the root", inside
	}
	for segment := range strings.SplitSeq(entry, "/") {
		if segment == ".." {
			return "leads out of the root", inside
		}
		if _, err := path.Match(segment, ""); err != nil {
			return "is no pattern", "close the bracket"
		}
		if strings.Contains(segment, "**") && segment != "**" {
			return "has ** beside other characters", "write ** alone between slashes"
		}
	}
	if list == "can_run" && path.IsAbs(entry) && strings.ContainsAny(entry, "*?[") {
		return "is a pattern outside the root", "name each program"
	}
	return "", ""
}

// unreachable says why a host is refused.
func unreachable(entry string) (why, hint string) {
	host, port, ok := strings.Cut(entry, ":")
	number := 0
	for _, c := range port {
		if c < '0' || c > '9' || len(port) > 5 {
			ok = false
			break
		}
		number = number*10 + int(c-'0')
	}
	if !ok || host == "" || number < 1 || number > 65535 || strings.ContainsAny(host, "*/@?[] ") {
		return "is no host", "write NAME:PORT, as in registry.example:443"
	}
	return "", ""
}
