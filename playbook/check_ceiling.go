package playbook

var ceilingCheck = &CheckDoc{
	ID: "iteration-ceiling", Summary: "a loop without a bound",
	Explain: `A goto that leads back makes a loop of fixing and trying again. How often it may lead back to one step is max_iterations, at that step or at the top of the playbook: past it the run fails. Without a number a model that is never content would go on for as long as the budget lasts.`,
	run: func(l *linter) {
		if l.MaxIterations.Written() {
			return
		}
		for _, j := range l.graph.gotos {
			to := l.Steps[j.to]
			loops := j.from == j.to || !to.Handler.Value || l.graph.follows(j.from, j.to)
			if loops && !to.MaxIterations.Written() && !to.flawed && !l.flawed {
				l.errorf(j.action.Span, "write max_iterations: 3 at that step, or at the top", "this leads back to step %q, without a bound", to.ID.Value)
			}
		}
	},
}
