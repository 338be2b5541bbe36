package playbook

// A form is what a value may look like, as a JSON Schema for editors. The parser
// is stricter: it knows what a pattern cannot say.
type form map[string]any

var (
	text     = form{"type": "string", "minLength": 1}
	expr     = form{"type": "string", "minLength": 1, "description": "an expression in CEL"}
	boolean  = form{"type": "boolean"}
	texts    = listOf(text)
	duration = form{"type": "string", "pattern": `^([0-9]+h)?([0-9]+m)?([0-9]+s)?$`, "minLength": 2}

	formSteps    = form{"type": "array", "items": ref("step"), "minItems": 1}
	formScope    = ref("scope")
	formRetry    = ref("retry")
	formObserver = ref("observer")
	formWord     = form{"anyOf": []any{form{"type": "string"}, ref("expr")}}
	formArgv     = form{"anyOf": []any{text, form{"type": "array", "items": formWord, "minItems": 1}}}
	formSchema   = form{"type": "object"}
	formLiteral  = form{"type": []string{"string", "number", "boolean"}}
	formInput    = form{"anyOf": []any{oneOf("string", "integer", "number", "boolean"), ref("input")}}
	formAction   = form{"anyOf": []any{oneOf("continue", "pause", "fail", "retry"), ref("goto")}}
	formEnd      = form{"anyOf": []any{oneOf("fail", "continue"), ref("goto")}}
)

func oneOf(words ...string) form { return form{"enum": words} }

func listOf(item form) form { return form{"type": "array", "items": item} }

func mapOf(value form) form { return form{"type": "object", "additionalProperties": value} }

func integer(least, most int64) form {
	return form{"type": "integer", "minimum": least, "maximum": most}
}

func ref(name string) form { return form{"$ref": "#/$defs/" + name} }

// described is a form with its documentation.
func (f form) described(doc string) form {
	out := form{"description": doc}
	for k, v := range f {
		if k != "description" {
			out[k] = v
		}
	}
	return out
}
