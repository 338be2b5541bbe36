package prompt

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Pin is an exact version of a model, written NAME@DATE.
type Pin struct {
	Name string // claude-sonnet-4-5
	Date string // as the provider spells it: 20250929 or 2025-12-11
}

// Sent is what a provider is asked for, and what it must say that it served.
func (p Pin) Sent() string { return p.Name + "-" + p.Date }

// String gives the written form.
func (p Pin) String() string { return p.Name + "@" + p.Date }

var modelName = regexp.MustCompile(`^[a-z0-9][a-z0-9._:/-]{0,127}$`)

// ParsePin reads NAME@DATE. Its error says what is wrong with s, and what form
// would be right.
func ParsePin(s string) (Pin, error) {
	name, date, ok := strings.Cut(s, "@")
	if !ok {
		return Pin{}, fmt.Errorf("model %q has no date, so it floats; write NAME@DATE", s)
	}
	if !modelName.MatchString(name) {
		return Pin{}, fmt.Errorf("model %q has no name before the @; write NAME@DATE", s)
	}
	for _, form := range []string{"20060102", time.DateOnly} {
		if _, err := time.Parse(form, date); err == nil {
			return Pin{name, date}, nil
		}
	}
	return Pin{}, fmt.Errorf("model %q floats: %q is no date; write NAME@DATE, as in claude-sonnet-4-5@20250929", s, date)
}
