package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// MaxArguments is the longest text of a call's arguments, in bytes.
const MaxArguments = 1 << 20

// ArgumentsError says why a call's arguments are not what the tool takes. The
// text is for the model. It holds no value and no name that the model wrote.
type ArgumentsError struct{ Text string }

func (e *ArgumentsError) Error() string { return e.Text }

func malformed(format string, args ...any) *ArgumentsError {
	return &ArgumentsError{fmt.Sprintf(format, args...)}
}

// Arguments checks what a model wrote as arguments and returns it in the
// canonical form of RFC 8785: what is shown to people, what approvals bind to,
// and what the tool is run with. Any error is an [*ArgumentsError].
func (r *Ready) Arguments(text string) (json.RawMessage, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, malformed("there are none: write {} where there is nothing to say")
	case len(text) > MaxArguments:
		return nil, malformed("they are longer than %d bytes", MaxArguments)
	}
	if err := readable(text); err != nil {
		return nil, err
	}
	args := jsontext.Value(text)
	if err := args.Canonicalize(); err != nil {
		return nil, syntax(err)
	}
	if args.Kind() != '{' {
		return nil, malformed("they are not a JSON object")
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(args)))
	if err != nil {
		return nil, malformed("they cannot be read")
	}
	if err := r.schema.Validate(v); err != nil {
		return nil, r.explain(err)
	}
	return json.RawMessage(args), nil
}

// readable checks that the text is one JSON value that every reader reads alike:
// no member twice, and no number that a float64 would round.
func readable(text string) error {
	d := jsontext.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return syntax(err)
		}
		if token.Kind() == '0' && !exact(token.String()) {
			return malformed("the number before byte %d has more digits than programs keep: write it as a string, or round it", d.InputOffset())
		}
		if d.StackDepth() == 0 {
			break
		}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return malformed("something follows the JSON value at byte %d", d.InputOffset())
	}
	return nil
}

// syntax says where JSON is broken, and how as far as that is one of a few
// things: the library's own words quote the text.
func syntax(err error) *ArgumentsError {
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) {
		return malformed("they are not valid JSON")
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return malformed("the member at byte %d has the name of one before it", s.ByteOffset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("the JSON ends too early, at byte %d", s.ByteOffset)
	}
	return malformed("they are not valid JSON, from byte %d on", s.ByteOffset)
}

// exact reports whether the shortest spelling of a number's float64 is the same
// number, so that its canonical form says what the model said.
func exact(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	digits, exp := decimal(number)
	kept, keptExp := decimal(strconv.FormatFloat(f, 'e', -1, 64))
	return digits == kept && (exp == keptExp || digits == "")
}

// decimal gives a JSON number as digits without zeros at either end, and the
// power of ten of the last one. The sign is left out; zero has no digits.
func decimal(number string) (digits string, exp int) {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	if power != "" {
		exp, _ = strconv.Atoi(power) // one too large gave no float
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exp -= len(fraction)
	short := strings.TrimRight(digits, "0")
	return short, exp + len(digits) - len(short)
}
