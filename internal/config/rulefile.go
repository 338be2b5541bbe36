package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/diag"
)

// Pack is the rules of a file, under the file's name less its extension. Guards
// name the pack, or single rules of it.
type Pack struct {
	rules.Own
	File string
	// Digest is the SHA-256 of the file, in hex.
	Digest string

	places map[string]diag.Span // of the rules' ids
}

// LoadRules reads a rule file. What is wrong in it is a [diag.List]; if it cannot
// be read at all, the error is that of the operating system.
func LoadRules(file string) (Pack, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Pack{}, fmt.Errorf("read rules: %w", err)
	}
	return ParseRules(file, data)
}

// ParseRules reads data as the content of a rule file of that name. It compiles
// each rule and tries its examples. Its error is a [diag.List].
func ParseRules(file string, data []byte) (Pack, error) {
	r := newReader(file)
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	sum := sha256.Sum256(data)
	d := rulesDecoder{decoder{reader: r}, &Pack{
		Own: rules.Own{Name: name}, File: file, Digest: hex.EncodeToString(sum[:]), places: map[string]diag.Span{},
	}}
	d.file(r.Read(data))
	switch {
	case !nameForm.MatchString(name):
		r.Errorf(r.Span(1, 1, 1), "name the file so: letters, digits, `_`, `.` and `-`, at most 64 of them", "a pack is named for its file, and %q is not a name", name)
	case isBuiltinRule(name):
		r.Errorf(r.Span(1, 1, 1), "rename the file", "a pack is named for its file, and %q is built in", name)
	}
	r.List.Sort()
	if err := r.List.Err(); err != nil {
		return Pack{}, err
	}
	return *d.pack, nil
}

// rulesDecoder reads the nodes of a rule file as a pack.
type rulesDecoder struct {
	decoder
	pack *Pack
}

func (d rulesDecoder) file(root node) {
	if root.Kind == null {
		d.Errorf(root.Span, "write `version: 1` and a list of rules", "the file is empty")
		return
	}
	version, listed := false, false
	members, flawed := d.members(root, ruleFileShape)
	for _, m := range members {
		switch m.Key {
		case "version":
			version = true
			d.version(m.Value)
		case "rules":
			listed = true
			if !d.is(m.Value, list, m.Key) {
				continue
			}
			if len(m.Value.Items) == 0 {
				d.Errorf(m.Value.Span, "", "rules is an empty list")
			}
			for _, item := range m.Value.Items {
				d.rule(item)
			}
		}
	}
	if !version && !flawed {
		d.Errorf(root.Span, "write `version: 1` first", "the file has no version")
	}
	if !listed && !flawed {
		d.Errorf(root.Span, "write rules: and a list", "the file has no rules")
	}
}

// ruleDecl is a rule as it was written.
type ruleDecl struct {
	id, pattern, group, severity, verdict at[string]
	validators                            []match.Validator
	match, noMatch                        []at[string]
}

func (d rulesDecoder) rule(n node) {
	var r ruleDecl
	before := len(d.List)
	members, flawed := d.members(n, ruleShape)
	for _, m := range members {
		switch m.Key {
		case "id":
			r.id = d.text(m.Value, m.Key)
			if r.id.set && !nameForm.MatchString(r.id.value) {
				d.Errorf(r.id.span, "use letters, digits, `_`, `.` and `-`, at most 64 of them", "%q is not the id of a rule", r.id.value)
			}
		case "pattern":
			r.pattern = d.anyText(m.Value, m.Key)
		case "group":
			r.group = d.text(m.Value, m.Key)
		case "validators":
			r.validators = d.validators(m.Value)
		case "severity":
			r.severity = d.oneOf(m.Value, m.Key, guard.Low.String(), guard.Medium.String(), guard.High.String(), guard.Critical.String())
		case "verdict":
			r.verdict = d.oneOf(m.Value, m.Key, guard.Allow.String(), guard.Redact.String(), guard.RequireApproval.String(), guard.Deny.String())
		case "match":
			r.match = d.examples(m)
		case "no_match":
			r.noMatch = d.examples(m)
		}
	}
	if !flawed {
		for _, must := range []struct {
			key string
			is  bool
		}{{"id", r.id.written()}, {"pattern", r.pattern.written()}, {"match", len(r.match) > 0 || len(d.List) > before}} {
			if !must.is {
				d.Errorf(n.Span, "", "a rule has no %s", must.key)
			}
		}
	}
	d.own(r.id)
	if made, ok := d.compile(r, len(d.List) == before); ok {
		d.pack.Rules = append(d.pack.Rules, made)
	}
}

// own reports an id that another rule has.
func (d rulesDecoder) own(id at[string]) {
	if !id.set {
		return
	}
	if isBuiltinRule(id.value) {
		d.Errorf(id.span, "choose another id", "%q is built in", id.value)
	}
	if first, ok := d.pack.places[id.value]; ok {
		d.Errorf(id.span, "choose another id", "two rules have the id %q, the first on line %d", id.value, first.Line)
		return
	}
	d.pack.places[id.value] = id.span
}

// compile makes the rule and tries its examples. A rule in which something is
// wrong already is looked at for what else is, and is not made.
func (d rulesDecoder) compile(r ruleDecl, sound bool) (match.Rule, bool) {
	out := match.Rule{
		ID: r.id.value, Pattern: r.pattern.value, Group: r.group.value, Validators: r.validators,
		Severity: guard.Medium, Verdict: guard.Redact,
	}
	if r.severity.set {
		out.Severity, _ = guard.ParseSeverity(r.severity.value)
	}
	if r.verdict.set {
		out.Verdict, _ = guard.ParseVerdict(r.verdict.value)
	}
	for _, e := range r.match {
		out.Match = append(out.Match, e.value)
	}
	for _, e := range r.noMatch {
		out.NoMatch = append(out.NoMatch, e.value)
	}
	if !r.id.set {
		out.ID = "without an id"
	}
	if !r.pattern.set || !d.parses(r.pattern, r.group) {
		return out, false
	}
	e, err := match.Compile([]match.Rule{out}, match.Options{Name: "example"})
	if err != nil {
		for errors.Unwrap(err) != nil { // its outer parts name the rule and the guard
			err = errors.Unwrap(err)
		}
		d.Errorf(r.pattern.span, "", "the pattern cannot be used: %v", err)
		return out, false
	}
	tried := len(d.List)
	for _, example := range r.match {
		if example.set && !finds(e, example.value) {
			d.Errorf(example.span, "", "rule %q finds nothing in its own example", out.ID)
		}
	}
	for _, example := range r.noMatch {
		if example.set && finds(e, example.value) {
			d.Errorf(example.span, "", "rule %q finds something in an example that it must not match", out.ID)
		}
	}
	return out, sound && len(d.List) == tried
}

// parses reports what package regexp says of a pattern, at the part that it is
// about, and a group that the pattern does not have.
func (d rulesDecoder) parses(pattern, group at[string]) bool {
	tree, err := syntax.Parse(pattern.value, syntax.Perl)
	if err != nil {
		span, what := pattern.span, err.Error()
		var bad *syntax.Error
		if errors.As(err, &bad) {
			span, what = d.within(pattern, bad.Expr), fmt.Sprintf("%s: %s", bad.Code, bad.Expr)
		}
		d.Errorf(span, "patterns are in the syntax of RE2: no look-around, no back-references", "the pattern does not parse: %s", what)
		return false
	}
	if !group.set {
		return true
	}
	var names []string
	for _, name := range tree.CapNames() {
		if name != "" {
			names = append(names, name)
		}
	}
	if !slices.Contains(names, group.value) {
		hint := "write the group as (?P<" + group.value + ">…)"
		if near := diag.Suggest(group.value, names); near != "" {
			hint = didYouMean(near)
		}
		d.Errorf(group.span, hint, "the pattern has no group %q", group.value)
		return false
	}
	return true
}

// within is the place of a part of a scalar, where its line has it as it stands;
// else that of the scalar.
func (d rulesDecoder) within(whole at[string], part string) diag.Span {
	span := whole.span
	if part == "" || span.Line < 1 || span.Line > len(d.Lines()) {
		return span
	}
	line := []rune(d.Lines()[span.Line-1])
	behind := string(line[min(span.Col-1, len(line)):])
	i := strings.Index(behind, part)
	if i < 0 {
		return span
	}
	return d.Span(span.Line, span.Col+utf8.RuneCountInString(behind[:i]), utf8.RuneCountInString(part))
}

// finds reports whether an engine has a finding in a text.
func finds(e *match.Engine, text string) bool {
	s := e.Open(context.Background(), guard.Channel{})
	written, _ := s.Write([]byte(text)) // an engine never fails
	n := len(written.Findings)
	closed, _ := s.Close()
	return n+len(closed.Findings) > 0
}

// validators reads a list of validators.
func (d rulesDecoder) validators(n node) (all []match.Validator) {
	for _, written := range d.texts(n, "validators").value {
		v, err := rules.ParseValidator(written.value)
		if err != nil {
			hint := "validators are " + strings.Join(rules.ValidatorForms(), ", ")
			if near := diag.Suggest(written.value, rules.ValidatorForms()); near != "" {
				hint = didYouMean(near) + " " + hint
			}
			d.Errorf(written.span, hint, "%v", err)
			continue
		}
		all = append(all, v)
	}
	return all
}

// examples reads a list of texts.
func (d rulesDecoder) examples(m member) (all []at[string]) {
	if !d.is(m.Value, list, m.Key) {
		return nil
	}
	for _, item := range m.Value.Items {
		all = append(all, d.anyText(item, "an item of "+m.Key))
	}
	return all
}

// anyText reads a string that is not empty, whatever is in it.
func (d rulesDecoder) anyText(n node, what string) at[string] {
	t := at[string]{value: n.Text, span: n.Span}
	if !d.is(n, text, what) {
		return t
	}
	if t.set = n.Text != ""; !t.set {
		d.Errorf(n.Span, "", "%s is empty", what)
	}
	return t
}
