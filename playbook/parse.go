package playbook

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/prompt"
	"github.com/stoplog/stoplog/internal/yamltree"
)

// MaxBytes is the size of the largest playbook that is read.
const MaxBytes = 2 << 20

// Parse reads data as the content of file, whose name stands in diagnostics. Its
// error is a diag.List with all that is wrong with the file's form; what the file
// means is for [Check].
func Parse(file string, data []byte) (*Playbook, error) {
	p, list := parse(file, data)
	if err := list.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// parse reads a file as far as it can be read.
func parse(file string, data []byte) (*Playbook, diag.List) {
	d := decoder{&yamltree.Reader{
		File: file, What: "a playbook",
		Limits: yamltree.Limits{Bytes: MaxBytes, Depth: 32},
	}}
	root := d.Read(data)
	p := &Playbook{File: file, Span: root.Span, lines: d.Lines()}
	switch root.Kind {
	case yamltree.Broken:
		p.flawed = true
	case yamltree.Null:
		p.flawed = true
		d.Errorf(root.Span, "write `playbook: NAME`, then `steps:`", "the file is empty")
	default:
		d.playbook(p, root)
	}
	d.List.Sort()
	return p, d.List
}

// decoder reads nodes as parts of a playbook. It sees to what can be seen in one
// place: types, forms, ranges.
type decoder struct{ *yamltree.Reader }

func (d decoder) members(n yamltree.Node, t *table) ([]yamltree.Member, bool) {
	return d.Members(n, t.shape, tables)
}

func (d decoder) playbook(p *Playbook, root yamltree.Node) {
	members, flawed := d.members(root, topTable)
	p.flawed = flawed
	for _, m := range members {
		switch m.Key {
		case "playbook":
			p.Name = d.name(m.Value, "the name of the playbook")
		case "description":
			p.Description = d.Prose(m.Value, m.Key)
		case "status":
			s := d.OneOf(m.Value, m.Key, string(Draft), string(Active))
			p.Status = At[Status]{Value: Status(s.Value), Span: s.Span}
		case "inputs":
			p.Inputs = d.inputs(m)
		case "outputs":
			p.Outputs = d.named(m, "output")
		case "prompt_roots":
			p.PromptRoots = d.Texts(m.Value, m.Key)
		case "max_iterations":
			p.MaxIterations = d.Integer(m.Value, m.Key, 1, maxIterations)
		case "steps":
			p.Steps = d.steps(m)
			p.flawed = p.flawed || len(p.Steps) == 0
		}
	}
	if !p.flawed && !p.Name.Written() {
		d.Errorf(root.Span, "write `playbook: NAME`", "the playbook has no name")
	}
	if !p.flawed && len(p.Steps) == 0 {
		d.Errorf(root.Span, "write `steps:`", "the playbook has no steps")
	}
}

// nameForm is what playbooks and steps may be called: their names stand in
// records, paths and messages.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

func (d decoder) name(n yamltree.Node, what string) Text {
	t := d.Text(n, what)
	if t.Written() && !nameForm.MatchString(t.Value) {
		d.Errorf(t.Span, "use letters, digits, `_` and `-`, at most 64 of them", "%s cannot be %q", what, t.Value)
		return Text{}
	}
	return t
}

func (d decoder) inputs(m yamltree.Member) []Input {
	if !d.Is(m.Value, yamltree.Mapping, m.Key) {
		return nil
	}
	var all []Input
	for _, item := range d.Unique(m.Value.Members) {
		if !d.identifier(item, "an input") {
			continue
		}
		in := Input{Name: Text{Value: item.Key, Span: item.Span}}
		if item.Value.Kind == yamltree.Mapping {
			d.input(&in, item.Value)
		} else {
			in.Type = d.inputType(item.Value)
		}
		all = append(all, in)
	}
	return all
}

func (d decoder) inputType(n yamltree.Node) At[Type] {
	t := d.OneOf(n, "the type of an input", string(prompt.String), string(prompt.Integer), string(prompt.Number), string(prompt.Boolean))
	return At[Type]{Value: Type(t.Value), Span: t.Span}
}

func (d decoder) input(in *Input, n yamltree.Node) {
	members, flawed := d.members(n, inputTable)
	var value yamltree.Node
	for _, m := range members {
		switch m.Key {
		case "type":
			in.Type = d.inputType(m.Value)
		case "description":
			in.Description = d.Prose(m.Value, m.Key)
		case "enum":
			in.Enum = d.Texts(m.Value, m.Key)
		case "default":
			value = m.Value
		}
	}
	if !in.Type.Written() {
		if !flawed && !slices.ContainsFunc(members, func(m yamltree.Member) bool { return m.Key == "type" }) {
			d.Errorf(n.Span, "write type: string", "input %s has no type", in.Name.Value)
		}
		return
	}
	if in.Enum.Written() && in.Type.Value != prompt.String {
		d.Errorf(in.Enum.Span, "remove it", "input %s has an enum and is no string", in.Name.Value)
	}
	if value.Kind != yamltree.Broken {
		in.Default = d.literal(value, in)
	}
}

// literal reads a default, which is of the input's type as it stands.
func (d decoder) literal(n yamltree.Node, in *Input) *Literal {
	what := "the default of input " + in.Name.Value
	out := &Literal{Span: n.Span, Value: n.Text}
	switch in.Type.Value {
	case prompt.String:
		if !d.Is(n, yamltree.String, what) {
			return nil
		}
		if in.Enum.Written() && !slices.ContainsFunc(in.Enum.Value, func(t Text) bool { return t.Value == n.Text }) {
			d.Errorf(n.Span, "", "%s is not in its enum", what)
		}
	case prompt.Integer:
		if !d.Integer(n, what, -1<<53, 1<<53).Written() {
			return nil
		}
	case prompt.Number:
		if !d.Is(n, yamltree.Number, what) || d.JSON(n, what) == nil {
			return nil
		}
	case prompt.Boolean:
		if !d.Is(n, yamltree.Boolean, what) {
			return nil
		}
		out.Value = strings.ToLower(n.Text)
	}
	return out
}

// reserved words cannot be named in an expression.
var reserved = []string{
	"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
	"loop", "package", "namespace", "return", "var", "void", "while",
}

// identifier says whether a key can be named in an expression.
func (d decoder) identifier(m yamltree.Member, what string) bool {
	switch {
	case !prompt.InputName.MatchString(m.Key):
		d.Errorf(m.Span, "use letters, digits and `_`, at most 64 of them", "%q is no name of %s", m.Key, what)
	case slices.Contains(reserved, m.Key):
		d.Errorf(m.Span, "choose another", "%q means something else in an expression", m.Key)
	default:
		return true
	}
	return false
}

// named reads a mapping from names to expressions.
func (d decoder) named(m yamltree.Member, what string) []Named {
	if !d.Is(m.Value, yamltree.Mapping, m.Key) {
		return nil
	}
	var all []Named
	for _, item := range d.Unique(m.Value.Members) {
		if !d.identifier(item, "an "+what) {
			continue
		}
		value := d.expr(item.Value, what+" "+item.Key)
		all = append(all, Named{Name: Text{Value: item.Key, Span: item.Span}, Value: value})
	}
	return all
}

// expr reads an expression as a text; whether it is one is for the checks.
func (d decoder) expr(n yamltree.Node, what string) Expr {
	if n.Kind == yamltree.Boolean { // true and false are expressions
		return Expr{Value: strings.ToLower(n.Text), Span: n.Span}
	}
	if n.Kind == yamltree.Number {
		d.Errorf(n.Span, fmt.Sprintf("quote it: %q", n.Text), "%s is an expression, and a number is ambiguous", what)
		return Expr{}
	}
	return d.Prose(n, what)
}

// action reads what a verdict or a failure leads to.
func (d decoder) action(n yamltree.Node, what string, words ...Do) *Action {
	if n.Kind == yamltree.Mapping {
		members, flawed := d.members(n, gotoTable)
		if len(members) == 0 {
			if !flawed {
				d.Errorf(n.Span, "write {goto: ID}", "%s names no action", what)
			}
			return nil
		}
		to := d.name(members[0].Value, "the step to go to") // the table has one key
		if !to.Written() {
			return nil
		}
		return &Action{Span: n.Span, Do: DoGoto, Goto: to}
	}
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	if n.Kind == yamltree.String && n.Text == "goto" {
		d.Errorf(n.Span, "write {goto: ID}", "%s does not say where to go", what)
		return nil
	}
	t := d.OneOf(n, what, append(all, "{goto: ID}")...)
	if !t.Written() {
		return nil
	}
	return &Action{Span: t.Span, Do: Do(t.Value)}
}

// verdicts reads on_verdict.
func (d decoder) verdicts(m yamltree.Member) []Verdict {
	if !d.Is(m.Value, yamltree.Mapping, m.Key) {
		return nil
	}
	all := []Verdict{}
	for _, item := range d.Unique(m.Value.Members) {
		if strings.TrimSpace(item.Key) == "" {
			d.Errorf(item.Span, "", "a verdict without a name")
			continue
		}
		a := d.action(item.Value, fmt.Sprintf("what verdict %q leads to", item.Key), DoContinue, DoPause, DoFail, DoRetry)
		if a == nil {
			continue
		}
		all = append(all, Verdict{Value: Text{Value: item.Key, Span: item.Span}, Action: *a})
	}
	return all
}

// span of time that a step may be given.
func (d decoder) duration(m yamltree.Member, most time.Duration) Duration {
	return d.Duration(m.Value, m.Key, time.Second, most)
}

// asList gives the diagnostics that an error is.
func asList(err error) (diag.List, bool) {
	var list diag.List
	ok := errors.As(err, &list)
	return list, ok
}
