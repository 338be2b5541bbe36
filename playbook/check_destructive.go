package playbook

var destructiveCheck = &CheckDoc{
	ID: "destructive", Summary: "a command that destroys, publishes or pays, and does not say so",
	Explain: `A second net under effect. Commands are read as a shell would read them, through sudo, env, xargs, find -exec, ssh and sh -c: rm -r (but for literal paths below tmp/), git push --force, kubectl delete, terraform destroy, DROP TABLE in psql -c, curl -X DELETE, npm publish and their kind. Say effect: irreversible, and put a pause before it. Where a pause stands on every way to the step already, it is a warning, since retry and goto must know too. The net has holes: a script that deletes looks like any other. What you know to be irreversible, declare.`,
	run: func(l *linter) {
		for i, s := range l.Steps {
			runs := []*Run{}
			switch w := s.Work.(type) {
			case *Run:
				runs = append(runs, w)
			case *Pause:
				if w.Preview != nil {
					runs = append(runs, w.Preview)
				}
			}
			for _, run := range runs {
				if s.Effect.Value != Irreversible {
					l.destructive(i, run)
				}
			}
		}
	},
}

func (l *linter) destructive(i int, run *Run) {
	argv := known(run.Argv)
	why, at := destroys(argv), run.Span
	if len(argv) > 0 {
		at = run.Argv[0].Span
	} else {
		why = shellDestroys(run.Line.Value, maxNesting) // a line that could not be split
	}
	if why == "" {
		return
	}
	s := l.Steps[i]
	if _, preview := s.Work.(*Pause); preview {
		l.errorf(at, "show what would happen, as in --dry-run", "the preview of %q runs before anybody is asked: %s", s.ID.Value, why)
		return
	}
	hint := "say effect: irreversible, and put a step of type pause before it"
	if l.guarded().before[i] {
		l.warnf(at, "say effect: irreversible", "step %q does not say so: %s", s.ID.Value, why)
		return
	}
	l.errorf(at, hint, "step %q asks nobody: %s", s.ID.Value, why)
}
