package playbook

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/stoplog/stoplog/internal/yamltree"
)

var expressionCheck = &CheckDoc{
	ID: "expression", Summary: "an expression that is none, or names what is not there",
	Explain: `when, with, show, outputs and {expr: …} are expressions in CEL. They read inputs.NAME and steps["ID"].FIELD, of steps that this one follows: another may not have run. The fields of a step are state, and for a run exit_code, stdout, stderr; for a claude step verdict, output, text; for an agent output, text; outputs where it declares some; observer where it has one. when is true or false; what is given to a prompt or a playbook has the type that it declares. At run time an expression that cannot be evaluated fails its step.`,
	run: func(l *linter) {
		for _, e := range l.allExpressions() {
			l.expression(e)
		}
	},
}

// place is an expression and where it stands.
type place struct {
	Expr
	step int    // -1: the playbook's outputs
	own  bool   // it may read its own step
	what string // in messages
	want *cel.Type
}

// language is the playbook's, made once.
func (l *linter) language() *language {
	if l.exprs == nil {
		l.exprs = newLanguage(l.Inputs)
	}
	return l.exprs
}

// allExpressions gives every expression of the playbook.
func (l *linter) allExpressions() (all []place) {
	named := func(i int, what string, own bool, of []Named, types map[string]Type) {
		for _, n := range of {
			all = append(all, place{Expr: n.Value, step: i, own: own, what: what + " " + n.Name.Value, want: celTypes[types[n.Name.Value]]})
		}
	}
	word := func(i int, what string, w Word) {
		if w.Expr {
			all = append(all, place{Expr: w.Text, step: i, what: what})
		}
	}
	argv := func(i int, r *Run) {
		if r != nil {
			for _, w := range r.Argv {
				word(i, "an argument", w)
			}
		}
	}
	named(-1, "output", false, l.Outputs, nil)
	for i, s := range l.Steps {
		all = append(all, place{Expr: s.When, step: i, what: "when", want: cel.BoolType})
		named(i, "output", true, s.Outputs, nil)
		for _, v := range s.Env {
			word(i, "variable "+v.Name.Value, v.Value)
		}
		switch w := s.Work.(type) {
		case *Run:
			argv(i, w)
		case *Pause:
			named(i, "entry", false, w.Show, nil)
			argv(i, w.Preview)
		case *Call:
			named(i, "input", false, w.With, l.calleeTypes(w))
		case *Claude:
			named(i, "input", false, w.With, l.promptTypes(&w.Ask))
		case *Agent:
			named(i, "input", false, w.With, l.promptTypes(&w.Ask))
		}
		if s.Observer != nil {
			named(i, "input", false, s.Observer.With, l.promptTypes(&s.Observer.Ask))
		}
	}
	return slices.DeleteFunc(all, func(p place) bool { return !p.Written() })
}

func (l *linter) promptTypes(a *Ask) map[string]Type {
	p := l.promptOf(question{ask: a})
	if p == nil || len(a.With) == 0 {
		return nil
	}
	types := map[string]Type{}
	for _, in := range p.Inputs {
		types[in.Name.Value] = in.Type.Value
	}
	return types
}

func (l *linter) calleeTypes(c *Call) map[string]Type {
	b := l.callee(c)
	if b == nil || len(c.With) == 0 {
		return nil
	}
	types := map[string]Type{}
	for _, in := range b.playbook.Inputs {
		types[in.Name.Value] = in.Type.Value
	}
	return types
}

func (l *linter) expression(p place) {
	e := l.language().read(p.Value)
	wrong := false
	for _, r := range e.refs {
		if why, hint := l.refuses(p, r); why != "" {
			l.errorf(l.inside(p, r.offset), hint, "%s: %s", p.what, why)
			wrong = true
		}
	}
	if wrong {
		return // what CEL says beside that follows from it
	}
	for _, i := range e.issues {
		l.errorf(l.inside(p, i.offset), l.celHint(i.message), "%s: %s", p.what, i.message)
	}
	if e.kind != nil && p.want != nil && !fits(e.kind, p.want) {
		l.errorf(p.Span, "", "%s must be %s, and is %s", p.what, typeName(p.want), typeName(e.kind))
	}
}

// inside is the place of a byte of an expression in the file.
func (l *linter) inside(p place, offset int) Span { return yamltree.Place(l.lines, p.Span, offset) }

func fits(got, want *cel.Type) bool {
	return want.IsAssignableType(got) || got.Kind() == cel.DynType.Kind() || want == cel.DoubleType && got == cel.IntType
}

func typeName(t *cel.Type) string {
	switch t {
	case cel.BoolType:
		return "true or false"
	case cel.StringType:
		return "a string"
	case cel.IntType:
		return "a whole number"
	case cel.DoubleType:
		return "a number"
	}
	return "a " + t.String()
}

// celHint helps with a name that CEL does not know.
func (l *linter) celHint(message string) string {
	_, name, ok := strings.Cut(message, "undeclared reference to '")
	if !ok {
		return ""
	}
	name = strings.TrimSuffix(name, "'")
	for _, in := range l.Inputs {
		if in.Name.Value == name {
			return "write inputs." + name
		}
	}
	if _, ok := l.graph.byID[name]; ok {
		return fmt.Sprintf("write steps[%q]", name)
	}
	return "an expression reads inputs.NAME and steps[\"ID\"].FIELD"
}

// refuses says why a reference is refused; empty if it is not.
func (l *linter) refuses(p place, r reference) (why, hint string) {
	if r.input {
		return l.refusesInput(r)
	}
	if r.name == whole {
		return "steps without the id of one", `write steps["ID"].FIELD`
	}
	n, ok := l.graph.byID[r.name]
	if !ok {
		return fmt.Sprintf("there is no step %q", r.name), suggestion(r.name, l.graph.ids())
	}
	s := l.Steps[n]
	switch {
	case n == p.step && !p.own:
		return fmt.Sprintf("step %q reads itself before it has run", r.name), ""
	case p.step >= 0 && n != p.step && !l.graph.follows(p.step, n):
		return fmt.Sprintf("step %q does not follow step %q, which may not have run", l.Steps[p.step].ID.Value, r.name), "add it to needs"
	case s.flawed:
		return "", ""
	}
	return l.refusesField(s, r)
}

func (l *linter) refusesInput(r reference) (why, hint string) {
	var names []string
	for _, in := range l.Inputs {
		names = append(names, in.Name.Value)
	}
	switch {
	case slices.Contains(names, r.name):
		return "", ""
	case r.name == whole:
		return "inputs without the name of one", "write inputs.NAME"
	case len(names) == 0:
		return fmt.Sprintf("there is no input %q: the playbook declares none", r.name), "declare it: inputs: {" + r.name + ": string}"
	}
	return fmt.Sprintf("there is no input %q", r.name), suggestion(r.name, names)
}

func (l *linter) refusesField(s *Step, r reference) (why, hint string) {
	fields := l.fields(s)
	switch {
	case r.field == "":
		return fmt.Sprintf("step %q without a field", r.name), "it has " + list(fields)
	case !slices.Contains(fields, r.field):
		return fmt.Sprintf("step %q has no %s", r.name, r.field), suggestion(r.field, fields)
	case r.field == "outputs":
		names := l.outputNames(s)
		if r.member == "" {
			return fmt.Sprintf("outputs of step %q without the name of one", r.name), "it has " + list(names)
		}
		if !slices.Contains(names, r.member) {
			return fmt.Sprintf("step %q declares no output %q", r.name, r.member), suggestion(r.member, names)
		}
	}
	return "", ""
}

// fields are those of a step that an expression may read.
func (l *linter) fields(s *Step) []string {
	fields := []string{"state"}
	switch w := s.Work.(type) {
	case *Run:
		fields = append(fields, "exit_code", "stdout", "stderr")
	case *Claude:
		fields = append(fields, "verdict", "output", "text")
	case *Agent:
		fields = append(fields, "text")
		if w.Output != nil {
			fields = append(fields, "output")
		}
	case *Pause:
		fields = append(fields, "verdict")
	}
	if len(l.outputNames(s)) > 0 {
		fields = append(fields, "outputs")
	}
	if s.Observer != nil {
		fields = append(fields, "observer")
	}
	return fields
}

func (l *linter) outputNames(s *Step) (names []string) {
	outputs := s.Outputs
	if call, ok := s.Work.(*Call); ok {
		if b := l.callee(call); b != nil {
			outputs = b.playbook.Outputs
		}
	}
	for _, o := range outputs {
		names = append(names, o.Name.Value)
	}
	return names
}
