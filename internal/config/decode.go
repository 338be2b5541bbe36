package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/secret"
)

// at is a value with the place where it was written. The zero at was not
// written; one that is written and not set was wrong, and is reported already.
type at[T any] struct {
	value T
	span  diag.Span
	set   bool
}

func (a at[T]) written() bool { return a.span.Line > 0 }

// names is a list of strings.
type names = at[[]at[string]]

// The declarations of a file: what it says, before it means anything. A list of
// them is in the file's order.
type (
	document struct {
		root   diag.Span
		listen at[string]
		rules  names

		requireKeys at[bool]
		tls         *tlsDecl

		store     at[string]
		seal      sealDecl
		maxBody   at[int64]
		upstreams []upstreamDecl
		guards    []guardDecl
		profiles  []profileDecl
		gateway   *gatewayDecl
		budgets   budgetsDecl
		prices    []priceDecl
	}
	upstreamDecl struct {
		flawed                                   bool // something in it was reported: that something is missing may follow from it
		name, protocol, baseURL, key, zone, pace at[string]

		keyCommand names
		cassettes  names
		reach      reachDecl
	}
	guardDecl struct {
		flawed bool // as upstreamDecl's
		name   at[string]
		rules  names
		// literals say where values are that are looked for.
		literals names
		class    at[string]
		verdict  at[string]
	}
	profileDecl struct {
		name, extends, model, capture at[string]
		upstreams, models             names
		input, output                 []useDecl
		maxHold, maxRuleHold          at[int64]
		reserve                       at[int64]
		budget                        limitDecl
		dataClass                     at[string]
		ceilings                      []ceilingDecl
		calls                         []callDecl
		loop                          loopDecl
	}
	useDecl struct {
		guard, mode at[string]
	}
	gatewayDecl struct {
		span              diag.Span
		openai, anthropic names
	}
)

// decoder reads nodes as declarations. It checks what can be seen in one place:
// types, forms, ranges; resolve checks what needs the whole.
type decoder struct{ *reader }

func (d decoder) document(root node) document {
	doc := document{root: root.span}
	if root.kind == null {
		d.errorf(root.span, "write at least `version: 1`, or remove the file to use what is built in", "the file is empty")
		return doc
	}
	version := false
	members, flawed := d.members(root, fileShape)
	for _, m := range members {
		switch m.key {
		case "version":
			version = true
			d.version(m.value)
		case "listen":
			doc.listen = d.text(m.value, m.key)
		case "require_keys":
			doc.requireKeys = d.flag(m.value, m.key)
		case "tls":
			doc.tls = d.tls(m.value)
		case "store":
			doc.store = d.text(m.value, m.key)
		case "seal":
			doc.seal = d.seal(m.value)
		case "rules":
			doc.rules = d.texts(m.value, m.key)
		case "max_body_bytes":
			doc.maxBody = d.integer(m.value, m.key, 1<<10, 1<<30)
		case "upstreams":
			doc.upstreams = each(d, m, d.upstream)
		case "guards":
			doc.guards = each(d, m, d.guard)
		case "profiles":
			doc.profiles = each(d, m, d.profile)
		case "gateway":
			doc.gateway = d.gateway(m.value)
		case "budgets":
			limits, _ := d.members(m.value, budgetsShape)
			doc.budgets = d.budgets(limits)
		case "prices":
			doc.prices = d.prices(m)
		}
	}
	if !version && !flawed {
		d.errorf(root.span, "write `version: 1` first", "the file has no version")
	}
	return doc
}

func (d decoder) version(n node) {
	if v := d.integer(n, "version", 0, 1<<30); v.set && v.value != 1 {
		d.errorf(n.span, "write `version: 1`", "version %d is not known to this program, which reads version 1", v.value)
	}
}

func (d decoder) upstream(name at[string], n node) upstreamDecl {
	u := upstreamDecl{name: name}
	members, flawed := d.members(n, upstreamShape)
	u.flawed = flawed
	for _, m := range members {
		switch m.key {
		case "protocol":
			u.protocol = d.oneOf(m.value, m.key, OpenAI, Anthropic)
		case "base_url":
			u.baseURL = d.text(m.value, m.key)
		case "key":
			d.upstreamKey(&u, m.value)
		case "zone":
			u.zone = d.oneOf(m.value, m.key, "local", "private", "external")
		case "cassettes":
			u.cassettes = d.texts(m.value, m.key)
		case "pace":
			u.pace = d.oneOf(m.value, m.key, "none", "real")
		default:
			d.reach(&u.reach, m)
		}
	}
	return u
}

// upstreamKey reads where an upstream's key is: in the environment, in a file, or
// in what a command prints.
func (d decoder) upstreamKey(u *upstreamDecl, n node) {
	if n.kind != mapping {
		u.key = d.key(n)
		return
	}
	u.key = at[string]{span: n.span}
	members, _ := d.members(n, keyShape)
	for _, m := range members {
		u.keyCommand = d.words(m.value, m.key)
	}
}

// key reads where a key is. What stands there instead may be the key itself, so
// neither the message nor the line shows it.
func (d decoder) key(n node) at[string] {
	if _, err := secret.Parse(n.text); n.kind == text && err == nil {
		return at[string]{n.text, n.span, true}
	}
	if n.kind == broken {
		return at[string]{span: n.span}
	}
	refused := d.diagnostic(n.span, "write env:NAME, file:PATH or {command: [PROGRAM, …]}, and replace the key if this was one",
		"a key is not written into the configuration")
	refused.Source = ""
	d.list = append(d.list, refused)
	return at[string]{span: n.span}
}

func (d decoder) guard(name at[string], n node) guardDecl {
	g := guardDecl{name: name}
	members, flawed := d.members(n, guardShape)
	g.flawed = flawed
	for _, m := range members {
		switch m.key {
		case "rules":
			g.rules = d.texts(m.value, m.key)
		case "class":
			g.class = d.oneOf(m.value, m.key, classNames...)
		case "literals":
			g.literals = d.literals(m.value, m.key)
		case "verdict":
			g.verdict = d.oneOf(m.value, m.key, guard.Allow.String(), guard.Redact.String(), guard.RequireApproval.String(), guard.Deny.String())
		}
	}
	return g
}

func (d decoder) profile(name at[string], n node) profileDecl {
	p := profileDecl{name: name}
	members, _ := d.members(n, profileShape)
	for _, m := range members {
		switch m.key {
		case "extends":
			p.extends = d.text(m.value, m.key)
		case "upstream":
			p.upstreams = d.oneOrMore(m.value, m.key)
		case "model":
			p.model = d.text(m.value, m.key)
		case "models":
			p.models = d.texts(m.value, m.key)
		case "input":
			p.input = d.uses(m, reversible)
		case "output":
			p.output = d.uses(m)
		case "max_hold_bytes":
			p.maxHold = d.integer(m.value, m.key, 64, 64<<20)
		case "max_rule_hold_bytes":
			p.maxRuleHold = d.integer(m.value, m.key, 1, 64<<20)
		case "budget":
			p.budget = d.limit(m.value)
		case "reserve_tokens":
			p.reserve = d.integer(m.value, m.key, 1, 1<<24)
		case "data_class":
			p.dataClass = d.oneOf(m.value, m.key, classNames...)
		case "ceilings":
			p.ceilings = d.ceilings(m.value)
		case "calls":
			p.calls = d.calls(m)
		case "capture":
			p.capture = d.oneOf(m.value, m.key, "none", "metadata", "redacted", "full")
		default:
			d.loop(&p.loop, m)
		}
	}
	return p
}

// uses reads which guards judge a side, and how.
func (d decoder) uses(m member, more ...string) []useDecl {
	if !d.is(m.value, mapping, m.key) {
		return nil
	}
	var uses []useDecl
	for _, u := range d.unique(m.value.members) {
		mode := d.oneOf(u.value, "the mode of guard "+strconv.Quote(u.key),
			append([]string{guard.Enforce.String(), guard.Shadow.String(), guard.Audit.String(), off}, more...)...)
		uses = append(uses, useDecl{at[string]{u.key, u.span, true}, mode})
	}
	return uses
}

// What a profile may say of a guard beside its modes: off is for one that it does
// without, reversible for one whose redactions in requests answers undo.
const (
	off        = "off"
	reversible = "reversible"
)

func (d decoder) gateway(n node) *gatewayDecl {
	g := &gatewayDecl{span: n.span}
	members, flawed := d.members(n, gatewayShape)
	for _, m := range members {
		profiles := d.oneOrMore(m.value, "mount "+strconv.Quote(m.key))
		switch m.key {
		case OpenAI:
			g.openai = profiles
		case Anthropic:
			g.anthropic = profiles
		}
	}
	if len(members) == 0 && !flawed {
		d.errorf(n.span, "name a profile for openai, anthropic or both", "the gateway has no mount")
	}
	return g
}

// nameForm is what upstreams, guards and profiles may be called: their names
// stand in records, headers and messages.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// each reads a mapping from names to things of one shape.
func each[T any](d decoder, m member, read func(at[string], node) T) []T {
	if !d.is(m.value, mapping, m.key) {
		return nil
	}
	var all []T
	for _, item := range d.unique(m.value.members) {
		if !nameForm.MatchString(item.key) {
			d.errorf(item.span, "use letters, digits, `_`, `.` and `-`, at most 64 of them", "%q is not a name", item.key)
			continue
		}
		all = append(all, read(at[string]{item.key, item.span, true}, item.value))
	}
	return all
}

// is says whether the node is of the kind that is wanted, and reports it if not.
func (d decoder) is(n node, want kind, what string) bool {
	if n.kind == want || n.kind == broken {
		return n.kind == want
	}
	hint := ""
	if want == text && (n.kind == number || n.kind == boolean) {
		hint = "quote it"
	}
	d.errorf(n.span, hint, "%s must be %s, not %s", what, want, n.kind)
	return false
}

// text reads a string that is not empty and can be shown on one line.
func (d decoder) text(n node, what string) at[string] {
	t := at[string]{value: n.text, span: n.span}
	if !d.is(n, text, what) {
		return t
	}
	switch {
	case strings.TrimSpace(n.text) == "":
		d.errorf(n.span, "", "%s is empty", what)
	case strings.ContainsFunc(n.text, func(r rune) bool { return !unicode.IsPrint(r) }):
		d.errorf(n.span, "", "%s has a line end or another character that does not print", what)
	default:
		t.set = true
	}
	return t
}

// texts reads a list of strings: at least one, each once.
func (d decoder) texts(n node, what string) names {
	all := d.anyTexts(n, what)
	if all.set && len(n.items) == 0 {
		d.errorf(n.span, "", "%s is an empty list", what)
		all.set = false
	}
	return all
}

// anyTexts reads a list of strings that may be empty, each once.
func (d decoder) anyTexts(n node, what string) names {
	all := names{span: n.span}
	if !d.is(n, list, what) {
		return all
	}
	for _, item := range n.items {
		t := d.text(item, "an item of "+what)
		if !t.set {
			continue
		}
		if slices.ContainsFunc(all.value, func(u at[string]) bool { return u.value == t.value }) {
			d.errorf(t.span, "keep one", "%s has %q twice", what, t.value)
			continue
		}
		all.value = append(all.value, t)
	}
	all.set = len(all.value) > 0 || len(n.items) == 0
	return all
}

// words reads a program and its arguments, of which some may be alike.
func (d decoder) words(n node, what string) names {
	all := names{span: n.span}
	if !d.is(n, list, what) {
		return all
	}
	for _, item := range n.items {
		t := d.text(item, "an item of "+what)
		all.value, all.set = append(all.value, t), true
	}
	if len(n.items) == 0 {
		d.errorf(n.span, "", "%s is an empty list", what)
	}
	return all
}

// oneOrMore reads a string, or a list of them.
func (d decoder) oneOrMore(n node, what string) names {
	switch n.kind {
	case text:
		n = node{span: n.span, kind: list, items: []node{n}}
	case list, broken:
	default:
		d.errorf(n.span, "", "%s must be a string or a list, not %s", what, n.kind)
		return names{span: n.span}
	}
	return d.texts(n, what)
}

// oneOf reads one of some words.
func (d decoder) oneOf(n node, what string, words ...string) at[string] {
	t := d.text(n, what)
	if !t.set || slices.Contains(words, t.value) {
		return t
	}
	hint := "want one of " + strings.Join(words, ", ")
	if near := diag.Suggest(t.value, words); near != "" {
		hint = didYouMean(near) + " " + hint
	}
	d.errorf(t.span, hint, "%s cannot be %q", what, t.value)
	return at[string]{span: n.span}
}

var decimal = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)

// integer reads a whole number in decimal. A fraction is not rounded, and digits
// after a zero are not taken for octal.
func (d decoder) integer(n node, what string, least, most int64) at[int64] {
	t := at[int64]{span: n.span}
	if !d.is(n, number, what) {
		return t
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	switch {
	case err != nil || !decimal.MatchString(n.text):
		d.errorf(n.span, "write it in decimal digits", "%s must be a whole number, not %s", what, n.text)
	case v < least || v > most:
		d.errorf(n.span, "", "%s is %d, want %d to %d", what, v, least, most)
	default:
		t.value, t.set = v, true
	}
	return t
}
