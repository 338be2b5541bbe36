package prompt

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/yamltree"
)

// MaxBytes is the size of the largest prompt that is read.
const MaxBytes = 256 << 10

var (
	headShape = &yamltree.Shape{What: "the front matter", Path: "the front matter", Keys: []string{"model", "inputs", "output"}}
	shapes    = yamltree.Shapes{headShape}
)

// InputName is what an input of a prompt or a playbook may be called.
var InputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Parse reads data as the content of file, whose name stands in diagnostics. Its
// error is a [diag.List].
func Parse(file string, data []byte) (*Prompt, error) {
	r := &yamltree.Reader{File: file, What: "the front matter", Limits: yamltree.Limits{Bytes: MaxBytes, Depth: 24}}
	p := &Prompt{File: file}
	head, body, line, ok := split(r, data)
	if ok {
		p.head(r, r.Read(head))
		p.template(r, body, line)
	}
	r.List.Sort()
	if err := r.List.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// split takes a file apart at its lines of ---. The head keeps the file's lines:
// the first is empty in place of its ---. line is that of the body's first.
func split(r *yamltree.Reader, data []byte) (head []byte, body string, line int, ok bool) {
	at := diag.Span{Pos: diag.Pos{File: r.File, Line: 1, Col: 1}, Width: 1}
	if len(data) > MaxBytes {
		r.Errorf(at, "", "the prompt has %d bytes, want at most %d", len(data), MaxBytes)
		return nil, "", 0, false
	}
	text := string(bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n")))
	rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "\ufeff"), "---\n")
	if !ok {
		r.Errorf(at, "begin with ---, then model, inputs and output, then ---", "the prompt has no front matter")
		return nil, "", 0, false
	}
	h, body, ok := strings.Cut("\n"+rest, "\n---\n")
	if !ok {
		r.Errorf(at, "end it with a line of ---", "the front matter has no end")
		return nil, "", 0, false
	}
	return []byte(h), body, strings.Count(h, "\n") + 3, true
}

func (p *Prompt) head(r *yamltree.Reader, n yamltree.Node) {
	if n.Kind == yamltree.Null {
		r.Errorf(n.Span, "write model: NAME@DATE", "the front matter is empty")
		return
	}
	members, flawed := r.Members(n, headShape, shapes)
	for _, m := range members {
		switch m.Key {
		case "model":
			p.Model = r.Text(m.Value, m.Key)
		case "inputs":
			p.inputs(r, m)
		case "output":
			p.Output = ReadSchema(r, m.Value, m.Key)
			p.checkOutput(r)
		}
	}
	switch {
	case p.Model.Written():
		if _, err := ParsePin(p.Model.Value); err != nil {
			r.Errorf(p.Model.Span, "", "%v", err)
		}
	case !flawed:
		r.Errorf(n.Span, "write model: NAME@DATE", "the prompt has no model")
	}
}

func (p *Prompt) checkOutput(r *yamltree.Reader) {
	if p.Output == nil {
		return
	}
	if _, err := p.Output.Compile(); err != nil {
		r.Errorf(p.Output.Span, "", "%v", err)
	}
}

func (p *Prompt) inputs(r *yamltree.Reader, m yamltree.Member) {
	if !r.Is(m.Value, yamltree.Mapping, m.Key) {
		return
	}
	for _, in := range r.Unique(m.Value.Members) {
		if !InputName.MatchString(in.Key) {
			r.Errorf(in.Span, "use letters, digits and _", "%q is no name of an input", in.Key)
			continue
		}
		t := r.OneOf(in.Value, "the type of input "+in.Key, string(String), string(Integer), string(Number), string(Boolean))
		p.Inputs = append(p.Inputs, Input{
			Name: yamltree.At[string]{Value: in.Key, Span: in.Span},
			Type: yamltree.At[Type]{Value: Type(t.Value), Span: t.Span},
		})
	}
}

var hole = regexp.MustCompile(`\{\{[^{}\n]*\}?\}?`)

// template takes the body apart at its {{NAME}}.
func (p *Prompt) template(r *yamltree.Reader, body string, line int) {
	lines := strings.Split(body, "\n")
	if strings.TrimSpace(body) == "" {
		r.Errorf(diag.Span{Pos: diag.Pos{File: r.File, Line: line, Col: 1}, Width: 1}, "", "the prompt has no body")
		return
	}
	for i, text := range lines {
		at := diag.Span{Pos: diag.Pos{File: r.File, Line: line + i, Col: 1}, Width: 1}
		if !utf8.ValidString(text) {
			r.Errorf(at, "save it as UTF-8", "a line that is not UTF-8")
			return
		}
		from := 0
		for _, m := range hole.FindAllStringIndex(text, -1) {
			p.body = append(p.body, part{text: text[from:m[0]]})
			at.Col, at.Width = utf8.RuneCountInString(text[:m[0]])+1, utf8.RuneCountInString(text[m[0]:m[1]])
			p.hole(r, at, text[m[0]:m[1]], text)
			from = m[1]
		}
		if text = text[from:]; i < len(lines)-1 {
			text += "\n"
		}
		p.body = append(p.body, part{text: text})
	}
}

// hole reads one {{NAME}}.
func (p *Prompt) hole(r *yamltree.Reader, at diag.Span, text, line string) {
	inner, ok := strings.CutSuffix(strings.TrimPrefix(text, "{{"), "}}")
	name := strings.TrimSpace(inner)
	report := func(hint, format string, args ...any) {
		d := r.Diagnostic(at, hint, format, args...)
		d.Source = line
		r.List = append(r.List, d)
	}
	declared := make([]string, 0, len(p.Inputs))
	for _, in := range p.Inputs {
		declared = append(declared, in.Name.Value)
	}
	switch _, known := p.Input(name); {
	case !ok || !InputName.MatchString(name):
		report("write {{NAME}}, with an input that the front matter declares", "%q is no input: a body has nothing but {{NAME}}", text)
	case !known && len(declared) == 0:
		report("declare it: inputs: {"+name+": string}", "the body names input %q, and the front matter declares none", name)
	case !known:
		hint := "the inputs are " + strings.Join(declared, ", ")
		if near := diag.Suggest(name, declared); near != "" {
			hint = yamltree.DidYouMean(near) + " " + hint
		}
		report(hint, "the body names input %q, which the front matter does not declare", name)
	default:
		p.body = append(p.body, part{input: name})
	}
}
