package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxReasons is how many mistakes a model is told of at once.
const maxReasons = 5

// explain says what a schema has against arguments, from the schema's words
// alone.
func (r *Ready) explain(err error) *ArgumentsError {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return malformed("they do not fit the schema")
	}
	var reasons []string
	var visit func(*jsonschema.ValidationError)
	visit = func(v *jsonschema.ValidationError) {
		for _, cause := range v.Causes {
			visit(cause)
		}
		if len(v.Causes) == 0 {
			reasons = append(reasons, r.place(v.InstanceLocation)+r.reason(v))
		}
	}
	visit(v)
	if more := len(reasons) - maxReasons; more > 0 {
		reasons = append(reasons[:maxReasons], fmt.Sprintf("%d more", more))
	}
	return malformed("%s", strings.Join(reasons, "; "))
}

// place is where in the arguments something is wrong. A name that the schema
// does not have is the model's, and stays out.
func (r *Ready) place(location []string) string {
	if len(location) == 0 {
		return ""
	}
	var b strings.Builder
	for _, part := range location {
		if _, err := strconv.Atoi(part); err != nil && !r.known[part] {
			part = "*"
		}
		b.WriteString("/" + part)
	}
	return b.String() + " "
}

// reason puts one mistake into words.
func (r *Ready) reason(v *jsonschema.ValidationError) string {
	switch k := v.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, and is %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		return "lacks " + strings.Join(k.Missing, ", ")
	case *kind.AdditionalProperties:
		if len(v.InstanceLocation) == 0 {
			return fmt.Sprintf("has %s that the tool does not know; it knows: %s", count(len(k.Properties), "member"), strings.Join(r.members(), ", "))
		}
		return fmt.Sprintf("has %s that the tool does not know", count(len(k.Properties), "member"))
	case *kind.Enum:
		return "must be one of " + written(k.Want)
	case *kind.Const:
		return "must be " + written(k.Want)
	case *kind.Pattern:
		return "must match the pattern " + k.Want
	case *kind.Format:
		return "must have the format " + k.Want
	case *kind.MinLength:
		return fmt.Sprintf("must have %s or more", count(k.Want, "character"))
	case *kind.MaxLength:
		return fmt.Sprintf("must have %s at most", count(k.Want, "character"))
	case *kind.MinItems:
		return fmt.Sprintf("must have %s or more", count(k.Want, "item"))
	case *kind.MaxItems:
		return fmt.Sprintf("must have %s at most", count(k.Want, "item"))
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	}
	if path := v.ErrorKind.KeywordPath(); len(path) > 0 {
		return "breaks the schema's rule " + path[0]
	}
	return "does not fit the schema"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// written is a part of a schema as JSON.
func written(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "what the schema says"
	}
	const most = 500
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
