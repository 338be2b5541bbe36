package playbook

var capsRequiredCheck = &CheckDoc{
	ID: "caps-required", Summary: "a model without a bound on time or tokens",
	Explain: `max_latency_seconds and max_tokens_per_run bound every question to a model. Past them the whole process group is killed, and the step ends as failed_timeout or failed_budget_exceeded.`,
	run: func(l *linter) {
		for _, q := range l.questions() {
			if q.flawed {
				continue
			}
			if !q.ask.MaxLatency.Written() {
				l.errorf(q.at, "write max_latency_seconds: 120", "%s has no max_latency_seconds", q.what)
			}
			if !q.ask.MaxTokens.Written() {
				l.errorf(q.at, "write max_tokens_per_run: 20000", "%s has no max_tokens_per_run", q.what)
			}
		}
	},
}
