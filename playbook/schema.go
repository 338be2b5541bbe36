package playbook

import (
	"bytes"
	"encoding/json"
	"strings"
)

// SchemaURL is the id of [EditorSchema].
const SchemaURL = "https://github.com/stoplog/stoplog/blob/main/docs/playbook.schema.json"

// EditorSchema gives a JSON Schema, of draft 2020-12, by which editors complete
// and check a playbook while it is written. What it accepts may still be refused:
// a schema cannot follow a needs or read an expression.
func EditorSchema() []byte {
	defs := map[string]any{
		"scope": scopeTable.schema(), "retry": retryTable.schema("attempts"), "observer": observerTable.schema(observerRequires...),
		"input": inputTable.schema("type"), "goto": gotoTable.schema("goto"), "expr": exprTable.schema("expr"),
	}
	var kinds []string
	var cases []any
	for _, s := range stepTables {
		kinds = append(kinds, s.kind)
		name := s.kind + "_step"
		defs[name] = s.table.schema(stepRequires[s.kind]...)
		cases = append(cases, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"type": map[string]any{"const": s.kind}}},
			"then": ref(name),
		})
	}
	defs["step"] = map[string]any{
		"type": "object", "required": []string{"id", "type"},
		"properties": map[string]any{"type": oneOf(kinds...)}, "allOf": cases,
	}
	top := topTable.schema("playbook", "steps")
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["$id"] = SchemaURL
	top["title"] = "A Stoplog playbook"
	top["$defs"] = defs
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(top); err != nil {
		panic(err) // tables of this package
	}
	return out.Bytes()
}

// What a mapping must have, by the checks that say so.
var (
	observerRequires = []string{"model", "prompt_ref", "scope", "max_latency_seconds", "max_tokens_per_run", "on_verdict"}
	stepRequires     = map[string][]string{
		"run":      {"run"},
		"claude":   {"model", "prompt_ref", "scope", "max_latency_seconds", "max_tokens_per_run", "output", "on_verdict"},
		"agent":    {"model", "prompt_ref", "scope", "max_latency_seconds", "max_tokens_per_run"},
		"pause":    {"reason"},
		"playbook": {"playbook"},
	}
)

// schema is that of a mapping.
func (t *table) schema(required ...string) map[string]any {
	properties := map[string]any{}
	for _, k := range t.keys {
		properties[k.name] = k.form.described(k.doc)
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// Reference gives the keys of every mapping of a playbook and every check, as
// Markdown. It is docs/playbook-reference.md.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Playbooks: keys and checks\n\nWritten by `go test ./playbook -update`, from what the program itself goes by. [playbooks.md](playbooks.md) is the guide.\n\n## Keys\n")
	section := func(t *table, required []string) {
		b.WriteString("\n### " + strings.ToUpper(t.what[:1]) + t.what[1:] + "\n\n| key | |\n|---|---|\n")
		for _, k := range t.keys {
			name := "`" + k.name + "`"
			for _, r := range required {
				if r == k.name {
					name += " (required)"
				}
			}
			b.WriteString("| " + name + " | " + strings.ReplaceAll(k.doc, "|", "\\|") + " |\n")
		}
	}
	section(topTable, []string{"playbook", "steps"})
	for _, s := range stepTables {
		section(s.table, append([]string{"id", "type"}, stepRequires[s.kind]...))
	}
	section(observerTable, observerRequires)
	section(scopeTable, nil)
	section(retryTable, []string{"attempts"})
	section(inputTable, []string{"type"})
	b.WriteString("\n## Checks\n\n`stoplog explain ID` prints these.\n")
	for _, c := range Checks {
		b.WriteString("\n### " + c.ID + "\n\n" + strings.ToUpper(c.Summary[:1]) + c.Summary[1:] + ". " + c.Explain + "\n")
	}
	return b.String()
}
