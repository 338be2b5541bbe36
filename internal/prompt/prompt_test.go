package prompt

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

const good = `---
model: claude-sonnet-4-5@20250929
inputs: {log: string, n: integer}
output: {type: object, required: [verdict], properties: {verdict: {enum: [go, no-go]}}}
---
Read {{log}} and {{ n }}.
Braces in { one } are braces. Again {{log}}
`

func TestParse(t *testing.T) {
	p, err := Parse("gate@v1.md", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if p.Model.Value != "claude-sonnet-4-5@20250929" || p.Model.Span.Line != 2 || p.Model.Span.Col != 8 {
		t.Errorf("model %+v", p.Model)
	}
	if in, ok := p.Input("n"); len(p.Inputs) != 2 || !ok || in.Type.Value != Integer {
		t.Errorf("inputs %+v", p.Inputs)
	}
	if v := p.Output.Verdicts; len(v) != 2 || v[1].Value != "no-go" || v[1].Span.Line != 4 {
		t.Errorf("verdicts %+v", v)
	}
	// What an input says is data: its braces are not inputs.
	got, err := p.Render(map[string]string{"log": "{{n}} $x", "n": "3"})
	if want := "Read {{n}} $x and 3.\nBraces in { one } are braces. Again {{n}} $x\n"; err != nil || got != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	for _, values := range []map[string]string{{"log": "x"}, {"log": "x", "n": "1", "m": "2"}} {
		if got, err := p.Render(values); err == nil {
			t.Errorf("rendered %q of %v", got, values)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const head = "---\nmodel: claude-sonnet-4-5@20250929\ninputs: {log: string}\n"
	for text, want := range map[string]string{
		"Decide.\n":                                             "f.md:1:1: the prompt has no front matter; begin with ---, then model, inputs and output, then ---",
		"---\nmodel: a\n":                                       "f.md:1:1: the front matter has no end; end it with a line of ---",
		"---\n---\nDecide.\n":                                   "f.md:1:1: the front matter is empty; write model: NAME@DATE",
		head + "---\n  \n":                                      "f.md:5:1: the prompt has no body",
		head + "---\n{{lgo}}\n":                                 `f.md:5:1: the body names input "lgo", which the front matter does not declare; did you mean "log"? the inputs are log`,
		head + "---\nä {{log | upper}}\n":                       `f.md:5:3: "{{log | upper}}" is no input: a body has nothing but {{NAME}}; write {{NAME}}, with an input that the front matter declares`,
		head + "---\n{{log} x\n":                                `f.md:5:1: "{{log}" is no input: a body has nothing but {{NAME}}; write {{NAME}}, with an input that the front matter declares`,
		head + "---\nx {{\n":                                    `f.md:5:3: "{{" is no input: a body has nothing but {{NAME}}; write {{NAME}}, with an input that the front matter declares`,
		head + "---\n\xff\n":                                    "f.md:5:1: a line that is not UTF-8; save it as UTF-8",
		head + "modle: x\n---\nx\n":                             `f.md:4:1: unknown key "modle" in the front matter; did you mean "model"? the keys here are model, inputs, output`,
		"---\nmodel: claude\n---\nx\n":                          `f.md:2:8: model "claude" has no date, so it floats; write NAME@DATE`,
		"---\ninputs: {}\n---\nx\n":                             "f.md:2:1: the prompt has no model; write model: NAME@DATE",
		head + "output: {type: x}\n---\nx\n":                    "f.md:4:9: compile schema: it is no JSON Schema at /type",
		"---\nmodel: a@20250929\ninputs: {log: text}\n---\nx\n": `f.md:3:15: the type of input log cannot be "text"; want one of string, integer, number, boolean`,
	} {
		_, err := Parse("f.md", []byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

func TestParseRef(t *testing.T) {
	for text, want := range map[string]Ref{
		"gate.md@v2":                  {"gate", 2},
		"gate@v2.md":                  {"gate", 2},
		"prompts/dry-run-gate.md@v12": {"prompts/dry-run-gate", 12},
	} {
		got, err := ParseRef(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
		if again, err := ParseRef(got.String()); err != nil || again != got {
			t.Errorf("%s is printed as %s", text, got)
		}
	}
	for _, text := range []string{
		"", "gate", "gate.md@v0", "gate.md@v01", "gate.md@v-1", "gate.md@vx", "gate.md@v1.2", "../gate.md@v1", "/gate.md@v1", "a/../../b.md@v1",
		"a//b.md@v1", ".hidden.md@v1", ".md@v1", "a\\b.md@v1", "gate.md@v1@v2", "gate@v1", "./gate.md@v1", "gate.md@v99999999999999999999",
	} {
		if got, err := ParseRef(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	if _, err := ParseRef("gate.md"); !errors.Is(err, ErrUnversioned) {
		t.Errorf("gate.md: %v", err)
	}
}

func TestParsePin(t *testing.T) {
	for text, sent := range map[string]string{
		"claude-sonnet-4-5@20250929": "claude-sonnet-4-5-20250929",
		"gpt-5.2@2025-12-11":         "gpt-5.2-2025-12-11",
	} {
		pin, err := ParsePin(text)
		if err != nil || pin.Sent() != sent || pin.String() != text {
			t.Errorf("%s: %s %s %v", text, pin, pin.Sent(), err)
		}
	}
	for _, text := range []string{
		"", "@", "claude", "claude@", "@20250929", "claude@latest", "claude-sonnet-4-5-20250929", "claude@20251301", "claude@2025092", "claude@20250929@1", "Claude X@20250929",
	} {
		if pin, err := ParsePin(text); err == nil {
			t.Errorf("%q is %s", text, pin)
		}
	}
}

func TestFind(t *testing.T) {
	tree := fstest.MapFS{
		"prompts/gate@v1.md":         {Data: []byte(good)},
		"prompts/both@v1.md":         {Data: []byte(good)},
		"library/prompts/both@v1.md": {Data: []byte(good)},
		"library/prompts/lib@v3.md":  {Data: []byte(good)},
		"prompts/dir@v1.md":          {Mode: fs.ModeDir},
		"secret@v1.md":               {Data: []byte(good)},
	}
	for name, want := range map[string]string{"gate": "prompts/gate@v1.md", "prompts/gate": "prompts/gate@v1.md"} {
		file, corpus, err := Find(tree, Roots, Ref{name, 1})
		if err != nil || file != want || corpus != "prompts/gate@v1.corpus" {
			t.Errorf("%s: %s %s %v", name, file, corpus, err)
		}
	}
	if p, err := Load(tree, Roots, Ref{"lib", 3}); err != nil || p.File != "library/prompts/lib@v3.md" {
		t.Errorf("%+v %v", p, err)
	}
	for _, ref := range []Ref{{"gate", 2}, {"secret", 1}, {"library/gate", 1}} {
		if _, _, err := Find(tree, Roots, ref); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, _, err := Find(tree, Roots, Ref{"both", 1}); err == nil || !strings.Contains(err.Error(), "in two places") {
		t.Errorf("a prompt in two roots: %v", err)
	}
	if _, _, err := Find(tree, Roots, Ref{"dir", 1}); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder: %v", err)
	}
}

func TestValidate(t *testing.T) {
	p, err := Parse("gate@v1.md", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Output.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Validate([]byte(`{"verdict":"go"}`)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{`{}`, `{"verdict":"maybe"}`, `"go"`, `go`, ``, `{"verdict":"go"} {}`, "```json\n{\"verdict\":\"go\"}\n```"} {
		err := v.Validate([]byte(text))
		if err == nil {
			t.Errorf("%s fits", text)
		} else if strings.Contains(err.Error(), "maybe") {
			t.Errorf("the error repeats the text: %v", err)
		}
	}
	same := &Schema{JSON: []byte(`{"properties":{"verdict":{"enum":["go","no-go"]}},"type":"object","required":["verdict"]}`)}
	if !p.Output.Equal(same) || p.Output.Equal(&Schema{JSON: []byte(`{}`)}) || p.Output.Equal(nil) {
		t.Error("equality is not that of JSON")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good, "x")
	f.Add("---\nmodel: a@20250929\n---\n{{a}} {{\n", "{{a}}")
	f.Fuzz(func(t *testing.T, text, value string) {
		p, err := Parse("f.md", []byte(text))
		if err != nil {
			return
		}
		values := map[string]string{}
		size := len(text) // of all that can come out
		for _, in := range p.Inputs {
			values[in.Name.Value] = value
		}
		got, err := p.Render(values)
		if err != nil {
			t.Fatal(err)
		}
		if most := size + len(value)*strings.Count(text, "{{"); len(got) > most {
			t.Errorf("%d bytes of %d", len(got), most)
		}
	})
}
