package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/playbook"
)

// Expressions are CEL. What a name holds when they are evaluated is known only
// then, so here, and nowhere else of this package, values have no type of their
// own. The checks have seen to names and types before.

// maxCost bounds what an expression may take, in CEL's own count of operations.
const maxCost = 1_000_000

// language is what expressions may name.
var language = sync.OnceValues(func() (*cel.Env, error) {
	names := cel.MapType(cel.StringType, cel.DynType)
	return cel.NewEnv(cel.Variable("inputs", names), cel.Variable("steps", names), ext.Strings())
})

// scene is what expressions of a run see.
type scene struct {
	inputs map[string]any
	state  steps.State
	own    string         // the id of a step that is seen in another way than it stands
	as     map[string]any // this
}

// sceneOf is what there is to see in a state.
func sceneOf(s steps.State) (scene, error) {
	sc := scene{inputs: map[string]any{}, state: s}
	for _, in := range s.Book.Inputs {
		v, err := native(in.Value)
		if err != nil {
			return sc, fmt.Errorf("input %s: %w", in.Name, err)
		}
		sc.inputs[in.Name] = v
	}
	return sc, nil
}

// named are the steps that an expression names: others it cannot see, for ids are
// written out, and a long playbook has many.
func (sc scene) named(text string) (map[string]any, error) {
	all := map[string]any{}
	for i, p := range sc.state.Plan.Steps {
		switch {
		case !strings.Contains(text, p.ID):
		case p.ID == sc.own:
			all[p.ID] = sc.as
		default:
			seen, err := seenOf(sc.state.Steps[i])
			if err != nil {
				return nil, fmt.Errorf("step %s: %w", p.ID, err)
			}
			all[p.ID] = seen
		}
	}
	return all, nil
}

// seenOf is a step as expressions see it.
func seenOf(step *steps.Step) (map[string]any, error) {
	r := step.Result
	seen := map[string]any{
		"state": string(step.Standing()), "stdout": r.Stdout, "stderr": r.Stderr, "text": r.Text, "verdict": r.Verdict,
		"observer": step.Observed.Verdict,
	}
	if r.ExitCode != nil {
		seen["exit_code"] = int64(*r.ExitCode)
	}
	if len(r.Output) > 0 {
		v, err := native(r.Output)
		if err != nil {
			return nil, err
		}
		seen["output"] = v
	}
	outputs := map[string]any{}
	for _, o := range r.Outputs {
		v, err := native(o.Value)
		if err != nil {
			return nil, err
		}
		outputs[o.Name] = v
	}
	seen["outputs"] = outputs
	return seen, nil
}

// with is the scene with another end of a step, as its own outputs see it.
func (sc scene) with(id string, r steps.Result) (scene, error) {
	seen, err := seenOf(&steps.Step{Stage: steps.Final, Came: r.State, Result: r})
	if err != nil {
		return sc, err
	}
	sc.own, sc.as = id, seen
	return sc, nil
}

// eval evaluates an expression.
func (sc scene) eval(e playbook.Expr) (ref.Val, error) {
	env, err := language()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(e.Value)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s: %w", e.Span.Pos, issues.Err())
	}
	prog, err := env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Span.Pos, err)
	}
	named, err := sc.named(e.Value)
	if err != nil {
		return nil, err
	}
	v, _, err := prog.Eval(map[string]any{"inputs": sc.inputs, "steps": named})
	if err != nil {
		return nil, fmt.Errorf("%s: evaluate %q: %w", e.Span.Pos, e.Value, err)
	}
	return v, nil
}

// holds evaluates a condition. What is not true or false is an error.
func (sc scene) holds(e playbook.Expr) (bool, error) {
	v, err := sc.eval(e)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("%s: %q is a %s, and neither true nor false", e.Span.Pos, e.Value, v.Type().TypeName())
	}
	return bool(b), nil
}

// values evaluates named expressions.
func (sc scene) values(all []playbook.Named) ([]steps.Value, error) {
	var out []steps.Value
	for _, n := range all {
		v, err := sc.eval(n.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name.Value, err)
		}
		form, err := jsonOf(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", n.Name.Value, n.Value.Span.Pos, err)
		}
		out = append(out, steps.Value{Name: n.Name.Value, Value: form})
	}
	return out, nil
}

// jsonOf is a value's JSON.
func jsonOf(v ref.Val) (json.RawMessage, error) {
	if f, ok := v.(types.Double); ok && (math.IsNaN(float64(f)) || math.IsInf(float64(f), 0)) {
		return nil, fmt.Errorf("%v has no form in JSON", float64(f))
	}
	switch v := v.(type) {
	case types.String:
		return json.Marshal(strings.ToValidUTF8(string(v), "\uFFFD"))
	case types.Int, types.Uint, types.Double, types.Bool:
		return json.Marshal(v.Value())
	}
	switch v := v.(type) {
	case types.Null:
		return json.RawMessage("null"), nil
	case traits.Mapper:
		object := map[string]json.RawMessage{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name, ok := key.(types.String)
			if !ok {
				return nil, fmt.Errorf("a map with a %s for a key has no form in JSON", key.Type().TypeName())
			}
			form, err := jsonOf(v.Get(key))
			if err != nil {
				return nil, err
			}
			object[string(name)] = form
		}
		return json.Marshal(object)
	case traits.Lister:
		list := []json.RawMessage{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			form, err := jsonOf(it.Next())
			if err != nil {
				return nil, err
			}
			list = append(list, form)
		}
		return json.Marshal(list)
	}
	return nil, fmt.Errorf("a %s has no form in JSON", v.Type().TypeName())
}

// word is a word of a command, as one argument whatever is in it.
func (sc scene) word(w playbook.Word) (string, error) {
	if !w.Expr {
		return w.Value, nil
	}
	v, err := sc.eval(w.Text)
	if err != nil {
		return "", err
	}
	return plain(v)
}

// plain is a value as text, where it has one.
func plain(v ref.Val) (string, error) {
	switch v := v.(type) {
	case types.String:
		if strings.ContainsRune(string(v), 0) {
			return "", errors.New("a text with a zero byte cannot be an argument")
		}
		return string(v), nil
	case types.Int:
		return strconv.FormatInt(int64(v), 10), nil
	case types.Uint:
		return strconv.FormatUint(uint64(v), 10), nil
	case types.Double:
		return strconv.FormatFloat(float64(v), 'g', -1, 64), nil
	case types.Bool:
		return strconv.FormatBool(bool(v)), nil
	}
	return "", fmt.Errorf("a %s is no text", v.Type().TypeName())
}

// texts evaluates what a prompt is given, each as text.
func (sc scene) texts(all []playbook.Named) (map[string]string, error) {
	out := map[string]string{}
	for _, n := range all {
		v, err := sc.eval(n.Value)
		if err == nil {
			out[n.Name.Value], err = plain(v)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name.Value, err)
		}
	}
	return out, nil
}

// native is a JSON value as expressions see it: whole numbers are integers.
func native(b json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return numbers(v), nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String() // too large for a number of CEL: it stays as it was written
		}
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

// inputsOf are the values of a playbook's inputs, given as text, by name. It says
// all that is wrong with them.
func inputsOf(pb *playbook.Playbook, given map[string]string) ([]steps.Value, error) {
	var out []steps.Value
	var errs []error
	for _, in := range pb.Inputs {
		name := in.Name.Value
		text, ok := given[name]
		if !ok && in.Default == nil {
			errs = append(errs, fmt.Errorf("input %s (%s) is missing: %s", name, in.Type.Value, in.Description.Value))
			continue
		}
		v, err := inputValue(in, text, ok)
		if err != nil {
			errs = append(errs, fmt.Errorf("input %s: %w", name, err))
			continue
		}
		out = append(out, steps.Value{Name: name, Value: v})
	}
	for name := range given {
		if !slices.ContainsFunc(pb.Inputs, func(in playbook.Input) bool { return in.Name.Value == name }) {
			errs = append(errs, fmt.Errorf("input %s: playbook %s has none of that name", name, pb.Name.Value))
		}
	}
	return out, errors.Join(errs...)
}

// inputValue is the value of an input: what was given, or its default.
func inputValue(in playbook.Input, text string, given bool) (json.RawMessage, error) {
	if !given {
		text = in.Default.Value
	}
	enum := in.Enum.Value
	if in.Enum.Written() && !slices.ContainsFunc(enum, func(t playbook.Text) bool { return t.Value == text }) {
		var all []string
		for _, t := range enum {
			all = append(all, t.Value)
		}
		return nil, fmt.Errorf("%q is not one of %q", text, all)
	}
	switch in.Type.Value {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no integer", text)
		}
		return json.Marshal(n)
	case "number":
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%q is no number", text)
		}
		return json.Marshal(f)
	case "boolean":
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return json.RawMessage(text), nil
	}
	return json.Marshal(strings.ToValidUTF8(text, "\uFFFD"))
}
