package rules

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/guard/match"
)

// plainValidators are the validators that take no argument, by name.
var plainValidators = map[string]match.Validator{
	"luhn":       match.Luhn(),
	"mod97":      match.Mod97(),
	"verhoeff":   verhoeff,
	"digit":      digit,
	"mixed":      mixed,
	"both-cases": bothCases,
	"filled-in":  filledIn,
	"no-code":    noCode,
}

// ValidatorForms are the ways in which [ParseValidator] wants validators written.
func ValidatorForms() []string {
	forms := []string{"entropy(BITS)", "without(WORD, …)"}
	for name := range plainValidators {
		forms = append(forms, name)
	}
	slices.Sort(forms)
	return forms
}

var validatorForm = regexp.MustCompile(`^([a-z0-9-]+)(?:\((.*)\))?$`)

// ParseValidator reads a validator as rule files have it, such as luhn or
// entropy(3.5).
func ParseValidator(text string) (match.Validator, error) {
	m := validatorForm.FindStringSubmatch(text)
	if m == nil {
		return match.Validator{}, fmt.Errorf("%q is not a validator", text)
	}
	name, args, called := m[1], m[2], strings.Contains(text, "(")
	if v, ok := plainValidators[name]; ok {
		if called {
			return match.Validator{}, fmt.Errorf("validator %s takes nothing in brackets", name)
		}
		return v, nil
	}
	switch name {
	case "entropy":
		floor, err := strconv.ParseFloat(args, 64)
		if err != nil || math.IsNaN(floor) || floor <= 0 || floor > 8 {
			return match.Validator{}, fmt.Errorf("entropy takes a number of bits a byte, above 0 and up to 8, not %q", args)
		}
		return match.Entropy(floor), nil
	case "without":
		var words []string
		for word := range strings.SplitSeq(args, ",") {
			if word = strings.ToLower(strings.TrimSpace(word)); word != "" {
				words = append(words, word)
			}
		}
		if len(words) == 0 {
			return match.Validator{}, fmt.Errorf("without takes words, such as without(example, test)")
		}
		return match.Without(words...), nil
	}
	return match.Validator{}, fmt.Errorf("unknown validator %q", name)
}
