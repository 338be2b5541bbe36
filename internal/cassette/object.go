package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is one JSON object of a file, its members not yet read.
type object map[string]json.RawMessage

// keys gives the keys in order.
func (o object) keys() []string { return slices.Sorted(maps.Keys(o)) }

// get reads a member into what to points at, which stays as it is if there is no
// such member.
func (o object) get(key string, to any) error {
	raw, ok := o[key]
	if !ok {
		return nil
	}
	err := json.Unmarshal(raw, to)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%q must be %s, not %s", key, kindOf(wrong.Type.Kind().String()), wrong.Value)
	}
	if err == nil && string(raw) == "null" {
		err = errors.New("it is null")
	}
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	return nil
}

// kindOf names a kind of Go's values as JSON does.
func kindOf(kind string) string {
	switch kind {
	case "map":
		return "an object"
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// text reads a string whose bytes can be told exactly. The decoder replaces half
// of a surrogate pair by U+FFFD and says nothing; that would be other bytes than
// the provider's.
func (o object) text(key string, line []byte) (string, error) {
	var s string
	if err := o.get(key, &s); err != nil {
		return "", err
	}
	said := bytes.Count(line, []byte("\ufffd")) + bytes.Count(bytes.ToLower(line), []byte(`\ufffd`))
	if strings.Count(s, "\ufffd") > said {
		return "", fmt.Errorf("%q has half of a surrogate pair: such bytes are written as base64", key)
	}
	return s, nil
}

// explain gives the place of a line's JSON error, in runes, and what it is.
func explain(line []byte, err error) (col int, reason string) {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return 1, "the line is of type " + wrong.Value
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return 1, err.Error()
	}
	before := min(max(int(syntax.Offset)-1, 0), len(line))
	return utf8.RuneCount(line[:before]) + 1, syntax.Error()
}

// quoted lists words, each in quotes.
func quoted(words []string) string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = strconv.Quote(w)
	}
	return strings.Join(q, ", ")
}
