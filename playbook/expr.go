package playbook

import (
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"

	"github.com/stoplog/stoplog/internal/prompt"
)

// language reads expressions as a playbook with these inputs has them. An
// expression that stands in many places is read once.
type language struct {
	env  *cel.Env
	read func(string) *expression
}

// expression is one that was read.
type expression struct {
	issues []issue
	refs   []reference
	kind   *cel.Type // of its value; nil where it has issues
}

// issue is what is wrong at a byte of an expression.
type issue struct {
	offset  int
	message string
}

// reference is a name that an expression reads.
type reference struct {
	offset int // of the name, in bytes
	input  bool
	name   string // the input's, or the step's id
	field  string // of a step; empty: the whole step
	member string // of a field that has some: outputs["member"], output.member
}

// whole is the name of a reference that does not say which input or step.
const whole = ""

var celTypes = map[Type]*cel.Type{
	prompt.String: cel.StringType, prompt.Integer: cel.IntType, prompt.Number: cel.DoubleType, prompt.Boolean: cel.BoolType,
}

func newLanguage(inputs []Input) *language {
	names := cel.MapType(cel.StringType, cel.DynType)
	options := []cel.EnvOption{
		cel.Variable("inputs", names), cel.Variable("steps", names), ext.Strings(),
		cel.ParserRecursionLimit(deepestExpression),
	}
	for _, in := range inputs {
		if t, ok := celTypes[in.Type.Value]; ok {
			options = append(options, cel.Variable("inputs."+in.Name.Value, t))
		}
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		panic(err) // names were checked by the parser, each once
	}
	l := &language{env: env}
	known := map[string]*expression{}
	l.read = func(text string) *expression {
		e, ok := known[text]
		if !ok {
			e = l.expression(text)
			known[text] = e
		}
		return e
	}
	return l
}

// mostExpression is how long an expression may be, in bytes: the parser's time
// is not linear in it.
const mostExpression = 4096

// deepestExpression is how deep one may be nested. The time to check types grows
// with a high power of it: 40 macros in each other take 0.1 s, 80 a second.
const deepestExpression = 24

func (l *language) expression(text string) *expression {
	e := &expression{}
	if len(text) > mostExpression {
		e.issues = []issue{{0, "the expression is too long"}}
		return e
	}
	parsed, issues := l.env.Parse(text)
	if e.take(text, issues) {
		return e
	}
	native := parsed.NativeRep()
	w := walker{e: e, text: text, info: native.SourceInfo()}
	w.walk(native.Expr())
	checked, issues := l.env.Check(parsed)
	if !e.take(text, issues) {
		e.kind = checked.OutputType()
	}
	return e
}

// take adds what CEL says is wrong, and says whether that is anything.
func (e *expression) take(text string, issues *cel.Issues) bool {
	if issues.Err() == nil {
		return false
	}
	for _, err := range issues.Errors() {
		offset := lineOffset(text, err.Location.Line()) + runeOffset(text, err.Location)
		e.issues = append(e.issues, issue{min(offset, len(text)), celSays(err.Message)})
	}
	return true
}

// celSays is CEL's message without what only its own makers need.
func celSays(message string) string {
	if strings.Contains(message, "'<EOF>'") {
		return "the expression ends where more is expected"
	}
	message = strings.TrimPrefix(message, "Syntax error: ")
	message, _, _ = strings.Cut(message, " (in container")
	message, _, _ = strings.Cut(message, " expecting ")
	return message
}

// lineOffset is the byte at which a line begins, from 1.
func lineOffset(text string, line int) (offset int) {
	for ; line > 1; line-- {
		next := strings.IndexByte(text[offset:], '\n')
		if next < 0 {
			break
		}
		offset += next + 1
	}
	return offset
}

// runeOffset is the number of bytes of a line before a location's column, which
// counts runes from 0.
func runeOffset(text string, at interface {
	Line() int
	Column() int
}) (offset int) {
	rest := text[lineOffset(text, at.Line()):]
	for range at.Column() {
		_, size := utf8.DecodeRuneInString(rest[offset:])
		offset += size
	}
	return offset
}

// walker collects the names that an expression reads.
type walker struct {
	e    *expression
	text string
	info *ast.SourceInfo
}

func (w *walker) add(at ast.Expr, r reference) {
	start := w.info.GetStartLocation(at.ID())
	r.offset = min(lineOffset(w.text, start.Line())+runeOffset(w.text, start), len(w.text))
	w.e.refs = append(w.e.refs, r)
}

// walk collects from an expression and its parts. A path (inputs.x,
// steps["a"].outputs.y) is taken whole.
func (w *walker) walk(e ast.Expr) {
	if path, root, ok := unfold(e); ok && (root.AsIdent() == "inputs" || root.AsIdent() == "steps") {
		w.path(root, path)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		w.walk(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			w.walk(call.Target())
		}
		for _, arg := range call.Args() {
			w.walk(arg)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			w.walk(item)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.walk(entry.AsMapEntry().Key())
			w.walk(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			w.walk(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			w.walk(part)
		}
	}
}

// path adds a reference. Names that are not literal are those of no step.
func (w *walker) path(root ast.Expr, path []step) {
	r := reference{input: root.AsIdent() == "inputs"}
	for i, s := range path {
		switch {
		case i == 0:
			r.name = s.name
		case i == 1 && !r.input:
			r.field = s.name
		case i == 2 && !r.input:
			r.member = s.name
		}
	}
	w.add(root, r)
	for _, s := range path {
		if s.index != nil {
			w.walk(s.index)
		}
	}
}

// step is one name of a path: a.name, a["name"], or a[index].
type step struct {
	name  string
	index ast.Expr // where it is not literal
}

// unfold takes a path apart, to the name that it begins with.
func unfold(e ast.Expr) (path []step, root ast.Expr, ok bool) {
	for {
		switch e.Kind() {
		case ast.IdentKind:
			for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
				path[i], path[j] = path[j], path[i]
			}
			return path, e, true
		case ast.SelectKind:
			s := e.AsSelect()
			path = append(path, step{name: s.FieldName()})
			e = s.Operand()
		case ast.CallKind:
			call := e.AsCall()
			if call.FunctionName() != operators.Index {
				return nil, nil, false
			}
			of, at := call.Args()[0], call.Args()[1]
			if name, ok := literalString(at); ok {
				path = append(path, step{name: name})
			} else {
				path = append(path, step{index: at})
			}
			e = of
		default:
			return nil, nil, false
		}
	}
}

func literalString(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
