package prompt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/yamltree"
)

// Schema is a JSON Schema, of draft 2020-12 where it does not say.
type Schema struct {
	Span diag.Span
	JSON json.RawMessage // its members in the order of the file
	// Verdicts is the enum of its property verdict; nil if it has none.
	Verdicts []yamltree.At[string]
}

// ReadSchema reads a schema that stands in a file; nil after a report.
func ReadSchema(r *yamltree.Reader, n yamltree.Node, what string) *Schema {
	if !r.Is(n, yamltree.Mapping, what) {
		return nil
	}
	text := r.JSON(n, what)
	if text == nil {
		return nil
	}
	return &Schema{Span: n.Span, JSON: text, Verdicts: verdicts(n)}
}

// verdicts reads properties.verdict.enum.
func verdicts(n yamltree.Node) (all []yamltree.At[string]) {
	for _, key := range []string{"properties", "verdict", "enum"} {
		var next yamltree.Node
		for _, m := range n.Members {
			if m.Key == key {
				next = m.Value
			}
		}
		n = next
	}
	for _, item := range n.Items {
		if item.Kind == yamltree.String {
			all = append(all, yamltree.At[string]{Value: item.Text, Span: item.Span})
		}
	}
	return all
}

// Equal says whether two schemas are the same text of JSON, but for the order of
// members.
func (s *Schema) Equal(t *Schema) bool {
	if s == nil || t == nil {
		return s == t
	}
	return bytes.Equal(sorted(s.JSON), sorted(t.JSON))
}

// sorted spells JSON with its members in order.
func sorted(text json.RawMessage) []byte {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return text
	}
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return out
}

// Validator checks texts against a schema.
type Validator struct{ schema *jsonschema.Schema }

// Compile makes a validator. A schema cannot refer to another file or address.
func (s *Schema) Compile() (*Validator, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.JSON))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const name = "schema.json"
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	schema, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %s", short(err))
	}
	return &Validator{schema}, nil
}

// short is what is wrong with a schema, without the address of its parts.
func short(err error) string {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		var v *jsonschema.ValidationError
		if errors.As(invalid.Err, &v) {
			for len(v.Causes) > 0 {
				v = v.Causes[0]
			}
			return "it is no JSON Schema at /" + strings.Join(v.InstanceLocation, "/")
		}
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// noLoader refuses to read schemas from anywhere.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a schema cannot refer to another file or address")
}

// Validate checks one JSON text. The error says where it does not fit; it repeats
// nothing of the text's values.
func (v *Validator) Validate(text []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return errors.New("it is no JSON")
	}
	if err := v.schema.Validate(doc); err != nil {
		var bad *jsonschema.ValidationError
		if !errors.As(err, &bad) {
			return errors.New("it does not fit the schema")
		}
		for len(bad.Causes) > 0 {
			bad = bad.Causes[0]
		}
		return fmt.Errorf("it does not fit the schema at /%s: %s", strings.Join(bad.InstanceLocation, "/"), strings.Join(bad.ErrorKind.KeywordPath(), "/"))
	}
	return nil
}
