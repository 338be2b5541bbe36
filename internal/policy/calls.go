package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/stoplog/stoplog/internal/glob"
)

// Ruling says what becomes of a tool call, from the loosest to the strictest.
type Ruling uint8

// The rulings.
const (
	Allow Ruling = iota
	RequireApproval
	Deny
)

var rulingNames = [...]string{"allow", "require_approval", "deny"}

func (r Ruling) String() string { return rulingNames[r] }

// ParseRuling reads what String writes.
func ParseRuling(s string) (Ruling, error) {
	if i := slices.Index(rulingNames[:], s); i >= 0 {
		return Ruling(i), nil
	}
	return Deny, fmt.Errorf("%q is no ruling: want allow, require_approval or deny", s)
}

// Rule is what a profile says of a tool's calls: the first of its clauses that
// holds decides, and a call of which none holds is denied.
type Rule struct {
	// Tool is a name, in which a `*` stands for any characters. The rule for a call
	// is the one that names its tool, or else the longest pattern that fits.
	Tool    string
	Clauses []Clause
}

// Clause is a ruling and, in CEL, when it holds. The expression sees `tool`, the
// name, and `args`, the arguments as JSON; an empty one always holds.
type Clause struct {
	Ruling Ruling
	When   string
}

// ClauseError says which clause of which rule is wrong, and where.
type ClauseError struct {
	Rule, Clause int // from 0
	Line, Col    int // in the expression, from 1
	Message      string
}

func (e *ClauseError) Error() string {
	return fmt.Sprintf("rule %d, clause %d: at %d:%d: %s", e.Rule+1, e.Clause+1, e.Line, e.Col, e.Message)
}

// Calls are rules, compiled. Nil has none, and is safe to ask.
type Calls struct{ rules []compiled }

type compiled struct {
	tool    string
	clauses []clause
}

type clause struct {
	ruling Ruling
	when   cel.Program // nil: always
}

// costLimit is how much one condition may cost, in CEL's own units: thousands of
// comparisons, and far less than a millisecond.
const costLimit = 50_000

// What a condition may be: deeper ones take the compiler itself too long.
const (
	maxDepth  = 24
	maxLength = 4096 // bytes
)

// environment is what conditions see.
var environment = func() *cel.Env {
	env, err := cel.NewEnv(
		cel.Variable("tool", cel.StringType),
		cel.Variable("args", cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserRecursionLimit(maxDepth), cel.ParserExpressionSizeLimit(maxLength),
		ext.Strings(), ext.Lists(),
	)
	if err != nil {
		panic(err) // it is this program's own
	}
	return env
}()

// Compile compiles rules. Its error is a *ClauseError.
func Compile(rules []Rule) (*Calls, error) {
	c := &Calls{}
	for i, r := range rules {
		done := compiled{tool: r.Tool}
		for j, said := range r.Clauses {
			program, err := condition(said.When)
			if err != nil {
				err.Rule, err.Clause = i, j
				return nil, err
			}
			done.clauses = append(done.clauses, clause{said.Ruling, program})
		}
		c.rules = append(c.rules, done)
	}
	return c, nil
}

func condition(when string) (cel.Program, *ClauseError) {
	if when == "" {
		return nil, nil
	}
	tree, issues := environment.Compile(when)
	if errs := issues.Errors(); len(errs) > 0 {
		return nil, &ClauseError{Line: errs[0].Location.Line(), Col: errs[0].Location.Column() + 1, Message: errs[0].Message}
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, &ClauseError{Line: 1, Col: 1, Message: fmt.Sprintf("it is a %s, want true or false", t)}
	}
	program, err := environment.Program(tree, cel.CostLimit(costLimit), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, &ClauseError{Line: 1, Col: 1, Message: err.Error()}
	}
	return program, nil
}

// find gives the rule for a tool.
func (c *Calls) find(tool string) *compiled {
	if c == nil {
		return nil
	}
	var best *compiled
	for i := range c.rules {
		r := &c.rules[i]
		if r.tool == tool {
			return r
		}
		if strings.Contains(r.tool, "*") && glob.Match(r.tool, tool) && (best == nil || len(r.tool) > len(best.tool)) {
			best = r
		}
	}
	return best
}

// MayStop reports whether some call of a tool would not be allowed, so that its
// calls must be complete before they are decided.
func (c *Calls) MayStop(tool string) bool {
	r := c.find(tool)
	return r != nil && !(len(r.clauses) > 0 && r.clauses[0].when == nil && r.clauses[0].ruling == Allow)
}

// Has reports whether there is a rule for a tool.
func (c *Calls) Has(tool string) bool { return c.find(tool) != nil }

// Judge says what becomes of a call. A tool without a rule is allowed. args is a
// JSON document; empty is {}.
func (c *Calls) Judge(tool string, args []byte) Ruling {
	r := c.find(tool)
	if r == nil {
		return Allow
	}
	var vars map[string]any
	for _, cl := range r.clauses {
		if cl.when == nil {
			return cl.ruling
		}
		if vars == nil {
			value, ok := read(args)
			if !ok {
				return Deny
			}
			vars = map[string]any{"tool": tool, "args": value}
		}
		out, _, err := cl.when.Eval(vars)
		if err != nil {
			return Deny
		}
		holds, ok := out.Value().(bool)
		if !ok {
			return Deny
		}
		if holds {
			return cl.ruling
		}
	}
	return Deny
}

// read reads arguments as every reader does, or not at all.
func read(args []byte) (any, bool) {
	if len(bytes.TrimSpace(args)) == 0 {
		return map[string]any{}, true
	}
	if !unambiguous(args) {
		return nil, false
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return nil, false
	}
	return value, true
}

// unambiguous reports whether a document is JSON in which no object has a member
// twice, whatever the letters' case: readers differ in which of them they take.
func unambiguous(doc []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(doc))
	var names []map[string]bool // of the objects that are open; nil for an array
	isName := false
	for {
		token, err := d.ReadToken()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if n := len(names); n > 0 && names[n-1] != nil && token.Kind() != '}' {
			_, length := d.StackIndex(d.StackDepth())
			isName = length%2 == 1 && token.Kind() == '"'
		} else {
			isName = false
		}
		switch token.Kind() {
		case '{':
			names = append(names, map[string]bool{})
		case '[':
			names = append(names, nil)
		case '}', ']':
			names = names[:len(names)-1]
		case '"':
			if isName {
				name := strings.ToLower(strings.ToUpper(token.String())) // as JSON readers fold: ſ is s
				if names[len(names)-1][name] {
					return false
				}
				names[len(names)-1][name] = true
			}
		}
	}
}
