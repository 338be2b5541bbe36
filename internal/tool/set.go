package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Set is the tools of a session. It never changes.
type Set struct {
	tools map[string]*Ready
	order []string // of names, as given
}

// Ready is a tool whose declaration was checked.
type Ready struct {
	Tool
	Spec   Spec
	schema *jsonschema.Schema
	// known are the member names that the schema itself has: only those are
	// repeated to the model.
	known map[string]bool
}

var names = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// NewSet checks what the tools declare: a name that is free, a description, an
// effect, a schema.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{tools: map[string]*Ready{}}
	for _, t := range tools {
		r := &Ready{Tool: t, Spec: t.Spec()}
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("tool %q: %w", r.Spec.Name, err)
		}
		if s.tools[r.Spec.Name] != nil {
			return nil, fmt.Errorf("two tools are named %q", r.Spec.Name)
		}
		s.tools[r.Spec.Name] = r
		s.order = append(s.order, r.Spec.Name)
	}
	return s, nil
}

// Lookup finds a tool by its name.
func (s *Set) Lookup(name string) (*Ready, bool) {
	r, ok := s.tools[name]
	return r, ok
}

// All yields the tools in the order in which they were given.
func (s *Set) All() iter.Seq[*Ready] {
	return func(yield func(*Ready) bool) {
		for _, name := range s.order {
			if !yield(s.tools[name]) {
				return
			}
		}
	}
}

func (r *Ready) check() error {
	switch spec := r.Spec; {
	case !names.MatchString(spec.Name):
		return errors.New("a name is 1 to 64 letters, digits, _ and -")
	case spec.Description == "":
		return errors.New("there is no description: the model cannot know what it is for")
	case spec.Effect < Read || spec.Effect > Irreversible:
		return errors.New("there is no effect: declare read, idempotent, write or irreversible")
	case spec.Class > Secret:
		return fmt.Errorf("unknown %s", spec.Class)
	}
	return r.compile()
}

// compile reads the schema. It is closed: nothing is loaded for a reference to
// the outside, be it a file or an address.
func (r *Ready) compile() error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.Spec.Schema))
	if err != nil {
		return fmt.Errorf("read its schema: %w", err)
	}
	if object, _ := doc.(map[string]any); object["type"] != "object" {
		return errors.New(`read its schema: arguments are an object: "type" must be "object"`)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(closed{})
	const here = "stoplog:arguments"
	if err := c.AddResource(here, doc); err != nil {
		return fmt.Errorf("read its schema: %w", err)
	}
	if r.schema, err = c.Compile(here); err != nil {
		return fmt.Errorf("read its schema: %w", err)
	}
	r.known = map[string]bool{}
	r.learn(doc)
	return nil
}

type closed struct{}

func (closed) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside of the schema", url)
}

// learn notes the member names below doc that are keys of "properties".
func (r *Ready) learn(doc any) {
	switch doc := doc.(type) {
	case []any:
		for _, v := range doc {
			r.learn(v)
		}
	case map[string]any:
		for key, v := range doc {
			if properties, ok := v.(map[string]any); ok && key == "properties" {
				for name := range properties {
					r.known[name] = true
				}
			}
			r.learn(v)
		}
	}
}

// members are the names of the schema's own members, sorted.
func (r *Ready) members() []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(r.Spec.Schema, &schema) != nil {
		return nil
	}
	var names []string
	for name := range schema.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
