package playbook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/stoplog/stoplog/internal/yamltree"
)

// Print writes a playbook in the one form that this package writes: keys in the
// order of the docs, a step a block, what is inside a step's key on one line.
// Parsing it gives the same tree, but for places. Comments are not in a tree, and
// so not in its form.
func Print(w io.Writer, p *Playbook) error {
	var out printer
	out.playbook(p)
	_, err := w.Write(out.Bytes())
	return err
}

// printer collects lines; pad stands before each.
type printer struct {
	bytes.Buffer
	pad string
}

// line writes key: value, unless the value is empty.
func (o *printer) line(key, value string) {
	if value == "" {
		return
	}
	fmt.Fprintf(o, "%s%s: %s\n", o.pad, key, value)
	o.pad = strings.Replace(o.pad, "-", " ", 1)
}

func (o *printer) playbook(p *Playbook) {
	o.line("playbook", quoteAt(p.Name))
	o.line("description", quoteAt(p.Description))
	o.line("status", string(p.Status.Value))
	if len(p.Inputs) > 0 {
		o.WriteString("inputs:\n")
		for _, in := range p.Inputs {
			fmt.Fprintf(o, "  %s: %s\n", quote(in.Name.Value), inputForm(in))
		}
	}
	o.line("outputs", namedForm(p.Outputs))
	o.line("prompt_roots", textsForm(p.PromptRoots))
	o.line("max_iterations", intForm(p.MaxIterations))
	o.WriteString("steps:\n")
	for _, s := range p.Steps {
		o.pad = "  - "
		o.step(s)
	}
}

func (o *printer) step(s *Step) {
	o.line("id", quoteAt(s.ID))
	o.line("type", s.Type.Value)
	o.line("handler", boolForm(s.Handler))
	o.line("then", actionForm(s.Then))
	o.line("when", quoteAt(s.When))
	o.line("needs", textsForm(s.Needs))
	switch w := s.Work.(type) {
	case *Run:
		o.line("run", argvForm(w))
	case *Claude:
		o.ask(w.Ask)
		o.line("output", schemaForm(w.Output))
		o.line("on_verdict", verdictsForm(w.OnVerdict))
	case *Agent:
		o.line("profile", quoteAt(w.Profile))
		o.ask(w.Ask)
		o.line("output", schemaForm(w.Output))
	case *Pause:
		o.line("reason", quoteAt(w.Reason))
		o.line("show", namedForm(w.Show))
		o.line("preview", argvForm(w.Preview))
		o.line("approvers", textsForm(w.Approvers))
		o.line("second_person", boolForm(w.SecondPerson))
		o.line("expire", durationForm(w.Expire))
	case *Call:
		o.line("playbook", quoteAt(w.File))
		o.line("with", namedForm(w.With))
	}
	o.line("env", envForm(s.Env))
	o.line("scope", scopeForm(s.Scope))
	o.line("effect", string(s.Effect.Value))
	o.line("touches", touchesForm(s.Touches))
	o.line("retry", retryForm(s.Retry))
	o.line("timeout", durationForm(s.Timeout))
	o.line("outputs", namedForm(s.Outputs))
	o.line("on_fail", actionForm(s.OnFail))
	o.line("max_iterations", intForm(s.MaxIterations))
	if s.Observer != nil {
		o.observer(s.Observer)
	}
}

func (o *printer) ask(a Ask) {
	o.line("via", string(a.Via.Value))
	o.line("model", quoteAt(a.Model))
	o.line("prompt_ref", quoteAt(a.PromptRef))
	o.line("with", namedForm(a.With))
	o.line("max_latency_seconds", intForm(a.MaxLatency))
	o.line("max_tokens_per_run", intForm(a.MaxTokens))
}

func (o *printer) observer(ob *Observer) {
	in := printer{pad: o.pad + "  "}
	in.ask(ob.Ask)
	in.line("scope", scopeForm(ob.Scope))
	in.line("window_bytes", intForm(ob.WindowBytes))
	in.line("on_verdict", verdictsForm(ob.OnVerdict))
	in.line("on_anomaly", ob.OnAnomaly.Value)
	if in.Len() == 0 {
		o.line("observer", "{}")
		return
	}
	fmt.Fprintf(o, "%sobserver:\n%s", o.pad, in.String())
}

// The forms of values. An empty one is a value that was not written.

func inputForm(in Input) string {
	if in.Default == nil && !in.Enum.Written() && !in.Description.Written() {
		return string(in.Type.Value)
	}
	members := []string{"type: " + string(in.Type.Value)}
	if in.Default != nil {
		value := in.Default.Value
		if in.Type.Value == "string" {
			value = quote(value)
		}
		members = append(members, "default: "+value)
	}
	return braces(append(members, pair("enum", textsForm(in.Enum)), pair("description", quoteAt(in.Description)))...)
}

func argvForm(r *Run) string {
	switch {
	case r == nil:
		return ""
	case r.Line.Written():
		return quote(r.Line.Value)
	}
	words := make([]string, len(r.Argv))
	for i, w := range r.Argv {
		words[i] = wordForm(w)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func wordForm(w Word) string {
	if w.Expr {
		return "{expr: " + quote(w.Value) + "}"
	}
	return quote(w.Value)
}

func scopeForm(s *Scope) string {
	if s == nil {
		return ""
	}
	return braces(pair("can_read", textsForm(s.CanRead)), pair("can_write", textsForm(s.CanWrite)),
		pair("can_run", textsForm(s.CanRun)), pair("can_reach", textsForm(s.CanReach)))
}

func retryForm(r *Retry) string {
	if r == nil {
		return ""
	}
	return braces(pair("attempts", intForm(r.Attempts)), pair("backoff", durationForm(r.Backoff)))
}

func actionForm(a *Action) string {
	switch {
	case a == nil:
		return ""
	case a.Do == DoGoto:
		return "{goto: " + quote(a.Goto.Value) + "}"
	}
	return string(a.Do)
}

func verdictsForm(vs []Verdict) string {
	if vs == nil {
		return ""
	}
	members := make([]string, len(vs))
	for i, v := range vs {
		members[i] = pair(quote(v.Value.Value), actionForm(&v.Action))
	}
	return braces(members...)
}

func namedForm(all []Named) string {
	if len(all) == 0 {
		return ""
	}
	members := make([]string, len(all))
	for i, n := range all {
		members[i] = pair(quote(n.Name.Value), quoteAt(n.Value))
	}
	return braces(members...)
}

func envForm(all []Var) string {
	if len(all) == 0 {
		return ""
	}
	members := make([]string, len(all))
	for i, v := range all {
		members[i] = pair(quote(v.Name.Value), wordForm(v.Value))
	}
	return braces(members...)
}

func touchesForm(all []At[Touch]) string {
	if len(all) == 0 {
		return ""
	}
	words := make([]string, len(all))
	for i, t := range all {
		words[i] = string(t.Value)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func textsForm(t Texts) string {
	if !t.Written() {
		return ""
	}
	words := make([]string, len(t.Value))
	for i, w := range t.Value {
		words[i] = quote(w.Value)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func schemaForm(s *Schema) string {
	if s == nil {
		return ""
	}
	return jsonForm(json.NewDecoder(bytes.NewReader(s.JSON)))
}

// jsonForm writes the next value of a JSON text, which is known to be one, in
// YAML's brackets.
func jsonForm(dec *json.Decoder) string {
	dec.UseNumber()
	token, err := dec.Token()
	if err != nil {
		panic(err) // it was written by yamltree
	}
	switch v := token.(type) {
	case json.Delim:
		var parts []string
		for dec.More() {
			part := jsonForm(dec)
			if v == '{' {
				part += ": " + jsonForm(dec)
			}
			parts = append(parts, part)
		}
		end, err := dec.Token()
		if err != nil {
			panic(err)
		}
		return v.String() + strings.Join(parts, ", ") + end.(json.Delim).String()
	case string:
		return quote(v)
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}

func intForm(n Int) string {
	if !n.Written() {
		return ""
	}
	return strconv.FormatInt(n.Value, 10)
}

func boolForm(b Bool) string {
	if !b.Written() {
		return ""
	}
	return strconv.FormatBool(b.Value)
}

func durationForm(d Duration) string {
	if !d.Written() {
		return ""
	}
	return yamltree.Short(d.Value)
}

// pair is key: value, or empty where the value is.
func pair(key, value string) string {
	if value == "" {
		return ""
	}
	return key + ": " + value
}

// braces is a mapping on one line, of the members that are not empty.
func braces(members ...string) string {
	members = slices.DeleteFunc(members, func(m string) bool { return m == "" })
	return "{" + strings.Join(members, ", ") + "}"
}

func quoteAt(t Text) string {
	if !t.Written() {
		return ""
	}
	return quote(t.Value)
}

var (
	plainForm = regexp.MustCompile(`^[A-Za-z_./][A-Za-z0-9_./@-]*$`)
	// meant otherwise is what a reader of YAML, of this or another version, takes
	// for something else than a string.
	meantOtherwise = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|y|n|null|[+-]?\.(inf|nan)|[0-9.]+(e[0-9.]+)?)$`)
)

// quote spells a string so that nothing else can be read in it.
func quote(s string) string {
	if plainForm.MatchString(s) && !meantOtherwise.MatchString(s) && !strings.Contains(s, "...") {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
