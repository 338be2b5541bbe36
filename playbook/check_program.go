package playbook

import (
	"path"
	"strings"
)

var programCheck = &CheckDoc{
	ID: "program", Summary: "a command that its own scope does not let run",
	Explain: `A step's own program may run; where a scope lists can_run, the program is one of them, so that the list says all that runs. A pattern of can_run counts.`,
	run: func(l *linter) {
		for _, s := range l.Steps {
			run, ok := s.Work.(*Run)
			if p, pause := s.Work.(*Pause); pause && p.Preview != nil {
				run, ok = p.Preview, true
			}
			if !ok || len(run.Argv) == 0 || s.Scope == nil || !s.Scope.CanRun.Written() {
				continue
			}
			program, listed := run.Argv[0], false
			for _, t := range s.Scope.CanRun.Value {
				listed = listed || mayRun(t.Value, program.Value)
			}
			if !listed {
				l.errorf(program.Span, "add it to can_run", "step %q runs %q, which is not in its can_run", s.ID.Value, program.Value)
			}
		}
	},
}

// mayRun says whether an entry of can_run stands for a program.
func mayRun(entry, program string) bool {
	if !strings.Contains(entry, "/") && entry != "**" || !strings.Contains(program, "/") {
		return entry == program || path.IsAbs(entry) && path.Base(entry) == program
	}
	return matchPath(strings.Split(path.Clean(entry), "/"), strings.Split(path.Clean(program), "/"))
}

// matchPath says whether a path is one that a pattern stands for.
func matchPath(pattern, name []string) bool {
	for ; len(pattern) > 0; pattern, name = pattern[1:], name[1:] {
		if pattern[0] == "**" {
			for i := range len(name) + 1 {
				if matchPath(pattern[1:], name[i:]) {
					return true
				}
			}
			return false
		}
		if len(name) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], name[0]); err != nil || !ok {
			return false
		}
	}
	return len(name) == 0
}
