package playbook

import "slices"

var codeCheck = &CheckDoc{
	ID: "expression-as-code", Summary: "an expression whose value a shell or an interpreter reads as code",
	Explain: `{expr: …} is one argument, whatever is in it, so nothing in it is taken for something else. That ends where the program takes the argument for code: sh -c, eval, ssh HOST, python -c, psql -c. Whoever gives the input, or writes what a step before it prints, then writes the command. Give the value as an argument of its own, [sh, -c, 'deploy "$1"', sh, {expr: inputs.target}], or under env.`,
	run: func(l *linter) {
		for _, s := range l.Steps {
			run, _ := s.Work.(*Run)
			if p, ok := s.Work.(*Pause); ok {
				run = p.Preview
			}
			if run == nil {
				continue
			}
			if program := readsAsCode(known(run.Argv), maxNesting); program != "" {
				i := slices.IndexFunc(run.Argv, func(w Word) bool { return w.Expr })
				l.errorf(run.Argv[i].Span, "give it as an argument of its own, as \"$1\", or under env", "step %q has %s read an expression's value as code", s.ID.Value, program)
			}
		}
	},
}

// known are the words of a playbook's command, as far as they are known.
func known(words []Word) []arg {
	argv := make([]arg, len(words))
	for i, w := range words {
		if !w.Expr {
			argv[i] = arg{w.Value, true}
		}
	}
	return argv
}

// evaluators are programs that take an argument for code, and the flags before
// it.
var evaluators = map[string][]string{
	"python": {"-c"}, "perl": {"-e", "-E"}, "ruby": {"-e"}, "node": {"-e", "-p", "--eval", "--print"}, "nodejs": {"-e", "--eval"}, "php": {"-r"},
	"lua": {"-e"}, "rscript": {"-e"}, "psql": {"-c", "--command"}, "mysql": {"-e", "--execute"}, "mariadb": {"-e", "--execute"},
	"mongosh": {"--eval"}, "mongo": {"--eval"}, "pwsh": {"-c", "-Command"}, "powershell": {"-c", "-Command"},
}

// readsAsCode gives the program, in a command, that would read something unknown
// as code; empty if there is none.
func readsAsCode(argv []arg, depth int) string {
	if len(argv) == 0 || !argv[0].known || depth == 0 {
		return ""
	}
	c := command{name: program(argv[0].text), args: argv[1:]}
	inner, _ := unwrap(c)
	for _, in := range inner {
		if name := readsAsCode(in, depth-1); name != "" {
			return name
		}
	}
	texts := c.shellTexts()
	for name, flags := range evaluators {
		if c.name == name || name == "python" && interpretsAs(c.name, "python") {
			texts = append(texts, c.value(flags...)...)
		}
	}
	if slices.ContainsFunc(texts, func(t arg) bool { return !t.known }) {
		return c.name
	}
	return ""
}
