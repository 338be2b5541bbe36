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
	switch m.key {
	case "system":
		l.system = d.prose(m.value, m.key)
	case "tools":
		l.tools = d.calls(m)
	case "enforced_signals":
		l.signals = d.anyTexts(m.value, m.key)
	case "limits":
		l.limits = d.limits(m.value)
	case "approvals":
		l.approvals = d.approvals(m.value)
	}
}

// limits reads them. Their bounds are those between which a limit is one: below,
// no run gets anywhere, and above, none is contained.
func (d decoder) limits(n node) (l limitsDecl) {
	members, _ := d.members(n, limitsShape)
	for _, m := range members {
		switch m.key {
		case "max_iterations":
			l.maxIterations = d.integer(m.value, m.key, 1, 10_000)
		case "timeout_seconds":
			l.timeoutSeconds = d.integer(m.value, m.key, 1, 24*60*60)
		case "stall_limit":
			l.stall = d.integer(m.value, m.key, 2, 100) // once is no stall
		case "malformed_limit":
			l.malformed = d.integer(m.value, m.key, 1, 100)
		case "tool_error_limit":
			l.toolErrors = d.integer(m.value, m.key, 1, 100)
		}
	}
	return l
}

func (d decoder) approvals(n node) (a approvalsDecl) {
	members, _ := d.members(n, approvalsShape)
	for _, m := range members {
		switch m.key {
		case "expire":
			a.expire = d.duration(m.value, m.key, time.Second, 365*24*time.Hour)
		case "second_person":
			a.secondPerson = d.flag(m.value, m.key)
		}
	}
	return a
}

// prose reads a text of several lines. Line ends at its end are the notation's,
// not the text's.
func (d decoder) prose(n node, what string) at[string] {
	t := at[string]{value: strings.TrimRight(n.text, "\n"), span: n.span}
	switch {
	case !d.is(n, text, what):
	case strings.TrimSpace(n.text) == "":
		d.errorf(n.span, "", "%s is empty", what)
	case strings.ContainsFunc(n.text, unprintable):
		d.errorf(n.span, "", "%s has a control character", what)
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
	return at[bool]{strings.EqualFold(n.text, "true"), n.span, d.is(n, boolean, what)}
}

// duration reads a time span in whole seconds.
func (d decoder) duration(n node, what string, least, most time.Duration) at[time.Duration] {
	t := at[time.Duration]{span: n.span}
	const form = "write one such as 30m, 24h or 1h30m"
	if n.kind == number {
		d.errorf(n.span, form, "%s has no unit: %s", what, n.text)
		return t
	}
	if !d.is(n, text, what) {
		return t
	}
	v, err := time.ParseDuration(n.text)
	switch {
	case err != nil || v%time.Second != 0:
		d.errorf(n.span, form, "%s cannot be %q", what, n.text)
	case v < least || v > most:
		d.errorf(n.span, "", "%s is %s, want %s to %s", what, n.text, short(least), short(most))
	default:
		t.value, t.set = v, true
	}
	return t
}
