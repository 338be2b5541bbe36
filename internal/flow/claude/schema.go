package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// compile reads a step's schema. It is closed: nothing is loaded for a reference
// to the outside.
func compile(schema json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("read the schema of the answer: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(closed{})
	const here = "stoplog:output"
	if err := c.AddResource(here, doc); err != nil {
		return nil, fmt.Errorf("read the schema of the answer: %w", err)
	}
	s, err := c.Compile(here)
	if err != nil {
		return nil, fmt.Errorf("read the schema of the answer: %w", err)
	}
	return s, nil
}

type closed struct{}

func (closed) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside of the schema", url)
}

// checker checks answers against a schema. An answer is one JSON object; what is
// wrong with it is said with the schema's words, and with none of the answer's.
func checker(s *jsonschema.Schema) func(json.RawMessage) error {
	return func(answer json.RawMessage) error {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
		if err != nil {
			return errors.New("it is not one JSON document")
		}
		if _, ok := doc.(map[string]any); !ok {
			return errors.New("it is not an object")
		}
		err = s.Validate(doc)
		var v *jsonschema.ValidationError
		if errors.As(err, &v) {
			return errors.New(explain(v))
		}
		return err
	}
}

// mostReasons is how many mistakes are told of at once.
const mostReasons = 5

// explain says where an answer does not fit, and which words of the schema say so.
func explain(v *jsonschema.ValidationError) string {
	var reasons []string
	var visit func(*jsonschema.ValidationError)
	visit = func(v *jsonschema.ValidationError) {
		for _, cause := range v.Causes {
			visit(cause)
		}
		if len(v.Causes) == 0 {
			reasons = append(reasons, reason(v))
		}
	}
	visit(v)
	slices.Sort(reasons) // a schema's properties have no order
	if more := len(reasons) - mostReasons; more > 0 {
		reasons = append(reasons[:mostReasons], fmt.Sprintf("%d more", more))
	}
	return strings.Join(reasons, "; ")
}

// reason puts one mistake into words.
func reason(v *jsonschema.ValidationError) string {
	place := "/" + strings.Join(v.InstanceLocation, "/")
	path := v.ErrorKind.KeywordPath()
	switch k := v.ErrorKind.(type) {
	case *kind.Required:
		return fmt.Sprintf("%s lacks %s", place, strings.Join(k.Missing, ", "))
	case *kind.Type:
		return fmt.Sprintf("%s must be %s, and is %s", place, strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return fmt.Sprintf("%s must be one of %v", place, k.Want)
	case *kind.AdditionalProperties:
		return fmt.Sprintf("%s has members that the schema does not know", place)
	}
	if len(path) == 0 {
		return place + " does not fit"
	}
	return fmt.Sprintf("%s breaks the schema's rule %s", place, path[0])
}
