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
		tickets   ticketsDecl
		maxBody   at[int64]
		upstreams []upstreamDecl
		guards    []guardDecl
		profiles  []profileDecl
		gateway   *gatewayDecl
		budgets   budgetsDecl
		rates     []rateDecl
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
		judge    *judgeDecl
		verdict  at[string]
	}
	profileDecl struct {
		name, extends, model, capture at[string]
		upstreams, models             names
		input, output                 []useDecl
		media                         mediaDecl
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
	doc := document{root: root.Span}
	if root.Kind == null {
		d.Errorf(root.Span, "write at least `version: 1`, or remove the file to use what is built in", "the file is empty")
		return doc
	}
	version := false
	members, flawed := d.members(root, fileShape)
	for _, m := range members {
		switch m.Key {
		case "version":
			version = true
			d.version(m.Value)
		case "listen":
			doc.listen = d.text(m.Value, m.Key)
		case "require_keys":
			doc.requireKeys = d.flag(m.Value, m.Key)
		case "tls":
			doc.tls = d.tls(m.Value)
		case "store":
			doc.store = d.text(m.Value, m.Key)
		case "seal":
			doc.seal = d.seal(m.Value)
		case "tickets":
			doc.tickets = d.tickets(m.Value)
		case "rules":
			doc.rules = d.texts(m.Value, m.Key)
		case "max_body_bytes":
			doc.maxBody = d.integer(m.Value, m.Key, 1<<10, 1<<30)
		case "upstreams":
			doc.upstreams = each(d, m, d.upstream)
		case "guards":
			doc.guards = each(d, m, d.guard)
		case "profiles":
			doc.profiles = each(d, m, d.profile)
		case "gateway":
			doc.gateway = d.gateway(m.Value)
		case "rates":
			doc.rates = d.rates(m.Value)
		case "budgets":
			limits, _ := d.members(m.Value, budgetsShape)
			doc.budgets = d.budgets(limits)
		case "prices":
			doc.prices = d.prices(m)
		}
	}
	if !version && !flawed {
		d.Errorf(root.Span, "write `version: 1` first", "the file has no version")
	}
	return doc
}

func (d decoder) version(n node) {
	if v := d.integer(n, "version", 0, 1<<30); v.set && v.value != 1 {
		d.Errorf(n.Span, "write `version: 1`", "version %d is not known to this program, which reads version 1", v.value)
	}
}

func (d decoder) upstream(name at[string], n node) upstreamDecl {
	u := upstreamDecl{name: name}
	members, flawed := d.members(n, upstreamShape)
	u.flawed = flawed
	for _, m := range members {
		switch m.Key {
		case "protocol":
			u.protocol = d.oneOf(m.Value, m.Key, OpenAI, Anthropic)
		case "base_url":
			u.baseURL = d.text(m.Value, m.Key)
		case "key":
			d.upstreamKey(&u, m.Value)
		case "zone":
			u.zone = d.oneOf(m.Value, m.Key, "local", "private", "external")
		case "cassettes":
			u.cassettes = d.texts(m.Value, m.Key)
		case "pace":
			u.pace = d.oneOf(m.Value, m.Key, "none", "real")
		default:
			d.reach(&u.reach, m)
		}
	}
	return u
}

// upstreamKey reads where an upstream's key is: in the environment, in a file, or
// in what a command prints.
func (d decoder) upstreamKey(u *upstreamDecl, n node) {
	if n.Kind != mapping {
		u.key = d.key(n)
		return
	}
	u.key = at[string]{span: n.Span}
	members, _ := d.members(n, keyShape)
	for _, m := range members {
		u.keyCommand = d.words(m.Value, m.Key)
	}
}

// key reads where a key is. What stands there instead may be the key itself, so
// neither the message nor the line shows it.
func (d decoder) key(n node) at[string] {
	if _, err := secret.Parse(n.Text); n.Kind == text && err == nil {
		return at[string]{n.Text, n.Span, true}
	}
	if n.Kind == broken {
		return at[string]{span: n.Span}
	}
	refused := d.Diagnostic(n.Span, "write env:NAME, file:PATH or {command: [PROGRAM, …]}, and replace the key if this was one",
		"a key is not written into the configuration")
	refused.Source = ""
	d.List = append(d.List, refused)
	return at[string]{span: n.Span}
}

func (d decoder) guard(name at[string], n node) guardDecl {
	g := guardDecl{name: name}
	members, flawed := d.members(n, guardShape)
	g.flawed = flawed
	for _, m := range members {
		switch m.Key {
		case "rules":
			g.rules = d.texts(m.Value, m.Key)
		case "class":
			g.class = d.oneOf(m.Value, m.Key, classNames...)
		case "llm_judge":
			g.judge = d.judge(m, judgeShape)
		case "http":
			g.judge = d.judge(m, serviceShape)
		case "literals":
			g.literals = d.literals(m.Value, m.Key)
		case "verdict":
			g.verdict = d.oneOf(m.Value, m.Key, guard.Allow.String(), guard.Redact.String(), guard.RequireApproval.String(), guard.Deny.String())
		}
	}
	return g
}

func (d decoder) profile(name at[string], n node) profileDecl {
	p := profileDecl{name: name}
	members, _ := d.members(n, profileShape)
	for _, m := range members {
		switch m.Key {
		case "extends":
			p.extends = d.text(m.Value, m.Key)
		case "upstream":
			p.upstreams = d.oneOrMore(m.Value, m.Key)
		case "model":
			p.model = d.text(m.Value, m.Key)
		case "models":
			p.models = d.texts(m.Value, m.Key)
		case "input":
			p.input = d.uses(m, reversible)
		case "output":
			p.output = d.uses(m)
		case "media":
			p.media = d.media(m.Value)
		case "max_hold_bytes":
			p.maxHold = d.integer(m.Value, m.Key, 64, 64<<20)
		case "max_rule_hold_bytes":
			p.maxRuleHold = d.integer(m.Value, m.Key, 1, 64<<20)
		case "budget":
			p.budget = d.limit(m.Value)
		case "reserve_tokens":
			p.reserve = d.integer(m.Value, m.Key, 1, 1<<24)
		case "data_class":
			p.dataClass = d.oneOf(m.Value, m.Key, classNames...)
		case "ceilings":
			p.ceilings = d.ceilings(m.Value)
		case "calls":
			p.calls = d.calls(m)
		case "capture":
			p.capture = d.oneOf(m.Value, m.Key, "none", "metadata", "redacted", "full")
		default:
			d.loop(&p.loop, m)
		}
	}
	return p
}

// uses reads which guards judge a side, and how.
func (d decoder) uses(m member, more ...string) []useDecl {
	if !d.is(m.Value, mapping, m.Key) {
		return nil
	}
	var uses []useDecl
	for _, u := range d.unique(m.Value.Members) {
		mode := d.oneOf(u.Value, "the mode of guard "+strconv.Quote(u.Key),
			append([]string{guard.Enforce.String(), guard.Shadow.String(), guard.Audit.String(), off}, more...)...)
		uses = append(uses, useDecl{at[string]{u.Key, u.Span, true}, mode})
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
	g := &gatewayDecl{span: n.Span}
	members, flawed := d.members(n, gatewayShape)
	for _, m := range members {
		profiles := d.oneOrMore(m.Value, "mount "+strconv.Quote(m.Key))
		switch m.Key {
		case OpenAI:
			g.openai = profiles
		case Anthropic:
			g.anthropic = profiles
		}
	}
	if len(members) == 0 && !flawed {
		d.Errorf(n.Span, "name a profile for openai, anthropic or both", "the gateway has no mount")
	}
	return g
}

// nameForm is what upstreams, guards and profiles may be called: their names
// stand in records, headers and messages.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// each reads a mapping from names to things of one shape.
func each[T any](d decoder, m member, read func(at[string], node) T) []T {
	if !d.is(m.Value, mapping, m.Key) {
		return nil
	}
	var all []T
	for _, item := range d.unique(m.Value.Members) {
		if !nameForm.MatchString(item.Key) {
			d.Errorf(item.Span, "use letters, digits, `_`, `.` and `-`, at most 64 of them", "%q is not a name", item.Key)
			continue
		}
		all = append(all, read(at[string]{item.Key, item.Span, true}, item.Value))
	}
	return all
}

// is says whether the node is of the kind that is wanted, and reports it if not.
func (d decoder) is(n node, want kind, what string) bool {
	if n.Kind == want || n.Kind == broken {
		return n.Kind == want
	}
	hint := ""
	if want == text && (n.Kind == number || n.Kind == boolean) {
		hint = "quote it"
	}
	d.Errorf(n.Span, hint, "%s must be %s, not %s", what, want, n.Kind)
	return false
}

// text reads a string that is not empty and can be shown on one line.
func (d decoder) text(n node, what string) at[string] {
	t := at[string]{value: n.Text, span: n.Span}
	if !d.is(n, text, what) {
		return t
	}
	switch {
	case strings.TrimSpace(n.Text) == "":
		d.Errorf(n.Span, "", "%s is empty", what)
	case strings.ContainsFunc(n.Text, func(r rune) bool { return !unicode.IsPrint(r) }):
		d.Errorf(n.Span, "", "%s has a line end or another character that does not print", what)
	default:
		t.set = true
	}
	return t
}

// texts reads a list of strings: at least one, each once.
func (d decoder) texts(n node, what string) names {
	all := d.anyTexts(n, what)
	if all.set && len(n.Items) == 0 {
		d.Errorf(n.Span, "", "%s is an empty list", what)
		all.set = false
	}
	return all
}

// anyTexts reads a list of strings that may be empty, each once.
func (d decoder) anyTexts(n node, what string) names {
	all := names{span: n.Span}
	if !d.is(n, list, what) {
		return all
	}
	for _, item := range n.Items {
		t := d.text(item, "an item of "+what)
		if !t.set {
			continue
		}
		if slices.ContainsFunc(all.value, func(u at[string]) bool { return u.value == t.value }) {
			d.Errorf(t.span, "keep one", "%s has %q twice", what, t.value)
			continue
		}
		all.value = append(all.value, t)
	}
	all.set = len(all.value) > 0 || len(n.Items) == 0
	return all
}

// words reads a program and its arguments, of which some may be alike.
func (d decoder) words(n node, what string) names {
	all := names{span: n.Span}
	if !d.is(n, list, what) {
		return all
	}
	for _, item := range n.Items {
		t := d.text(item, "an item of "+what)
		all.value, all.set = append(all.value, t), true
	}
	if len(n.Items) == 0 {
		d.Errorf(n.Span, "", "%s is an empty list", what)
	}
	return all
}

// oneOrMore reads a string, or a list of them.
func (d decoder) oneOrMore(n node, what string) names {
	switch n.Kind {
	case text:
		n = node{Span: n.Span, Kind: list, Items: []node{n}}
	case list, broken:
	default:
		d.Errorf(n.Span, "", "%s must be a string or a list, not %s", what, n.Kind)
		return names{span: n.Span}
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
	d.Errorf(t.span, hint, "%s cannot be %q", what, t.value)
	return at[string]{span: n.Span}
}

var decimal = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)

// integer reads a whole number in decimal. A fraction is not rounded, and digits
// after a zero are not taken for octal.
func (d decoder) integer(n node, what string, least, most int64) at[int64] {
	t := at[int64]{span: n.Span}
	if !d.is(n, number, what) {
		return t
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	switch {
	case err != nil || !decimal.MatchString(n.Text):
		d.Errorf(n.Span, "write it in decimal digits", "%s must be a whole number, not %s", what, n.Text)
	case v < least || v > most:
		d.Errorf(n.Span, "", "%s is %d, want %d to %d", what, v, least, most)
	default:
		t.value, t.set = v, true
	}
	return t
}
