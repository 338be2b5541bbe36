package config

import (
	"strings"
	"time"
	"unicode"
)

// What a profile says of the loop, before it means anything.
type (
	loopDecl struct {
		system    at[string]
		tools     []callDecl
		signals   names
		limits    limitsDecl
		approvals approvalsDecl
	}
	limitsDecl struct {
		maxIterations, timeoutSeconds, stall, malformed, toolErrors at[int64]
	}
	approvalsDecl struct {
		expire       at[time.Duration]
		secondPerson at[bool]
	}
)

// loop reads a member of a profile if it is one about the loop.
func (d decoder) loop(l *loopDecl, m member) {
	switch m.Key {
	case "system":
		l.system = d.prose(m.Value, m.Key)
	case "tools":
		l.tools = d.calls(m)
	case "enforced_signals":
		l.signals = d.anyTexts(m.Value, m.Key)
	case "limits":
		l.limits = d.limits(m.Value)
	case "approvals":
		l.approvals = d.approvals(m.Value)
	}
}

// limits reads them. Their bounds are those between which a limit is one: below,
// no run gets anywhere, and above, none is contained.
func (d decoder) limits(n node) (l limitsDecl) {
	members, _ := d.members(n, limitsShape)
	for _, m := range members {
		switch m.Key {
		case "max_iterations":
			l.maxIterations = d.integer(m.Value, m.Key, 1, 10_000)
		case "timeout_seconds":
			l.timeoutSeconds = d.integer(m.Value, m.Key, 1, 24*60*60)
		case "stall_limit":
			l.stall = d.integer(m.Value, m.Key, 2, 100) // once is no stall
		case "malformed_limit":
			l.malformed = d.integer(m.Value, m.Key, 1, 100)
		case "tool_error_limit":
			l.toolErrors = d.integer(m.Value, m.Key, 1, 100)
		}
	}
	return l
}

func (d decoder) approvals(n node) (a approvalsDecl) {
	members, _ := d.members(n, approvalsShape)
	for _, m := range members {
		switch m.Key {
		case "expire":
			a.expire = d.duration(m.Value, m.Key, time.Second, 365*24*time.Hour)
		case "second_person":
			a.secondPerson = d.flag(m.Value, m.Key)
		}
	}
	return a
}

// prose reads a text of several lines. Line ends at its end are the notation's,
// not the text's.
func (d decoder) prose(n node, what string) at[string] {
	t := at[string]{value: strings.TrimRight(n.Text, "\n"), span: n.Span}
	switch {
	case !d.is(n, text, what):
	case strings.TrimSpace(n.Text) == "":
		d.Errorf(n.Span, "", "%s is empty", what)
	case strings.ContainsFunc(n.Text, unprintable):
		d.Errorf(n.Span, "", "%s has a control character", what)
	default:
		t.set = true
	}
	return t
}

// unprintable says of a rune that a text of several lines does not hold it.
func unprintable(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || r == '\ufeff'
}

// flag reads true or false, of which YAML knows three spellings each.
func (d decoder) flag(n node, what string) at[bool] {
	return at[bool]{strings.EqualFold(n.Text, "true"), n.Span, d.is(n, boolean, what)}
}

// duration reads a time span in whole seconds.
func (d decoder) duration(n node, what string, least, most time.Duration) at[time.Duration] {
	t := at[time.Duration]{span: n.Span}
	const form = "write one such as 30m, 24h or 1h30m"
	if n.Kind == number {
		d.Errorf(n.Span, form, "%s has no unit: %s", what, n.Text)
		return t
	}
	if !d.is(n, text, what) {
		return t
	}
	v, err := time.ParseDuration(n.Text)
	switch {
	case err != nil || v%time.Second != 0:
		d.Errorf(n.Span, form, "%s cannot be %q", what, n.Text)
	case v < least || v > most:
		d.Errorf(n.Span, "", "%s is %s, want %s to %s", what, n.Text, short(least), short(most))
	default:
		t.value, t.set = v, true
	}
	return t
}
