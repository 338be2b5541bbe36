package playbook

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/stoplog/stoplog/internal/yamltree"
)

// argv reads a program and its arguments, as a line or as a list.
func (d decoder) argv(m yamltree.Member) Run {
	run := Run{Span: m.Value.Span}
	if m.Value.Kind != yamltree.List {
		run.Line = d.Prose(m.Value, m.Key)
		if run.Line.Written() {
			run.Argv = d.split(run.Line)
		}
		return run
	}
	if len(m.Value.Items) == 0 {
		d.Errorf(m.Value.Span, "", "%s is an empty list", m.Key)
	}
	for i, item := range m.Value.Items {
		word, ok := d.word(item, "an item of "+m.Key)
		switch {
		case !ok:
		case i == 0 && word.Expr:
			d.Errorf(word.Span, "write the program out: the scope and the checks need to know it", "the program of %s is an expression", m.Key)
		case i == 0 && word.Value == "":
			d.Errorf(word.Span, "", "the program of %s is empty", m.Key)
		default:
			run.Argv = append(run.Argv, word)
		}
	}
	return run
}

// word reads a literal, which may be empty, or {expr: EXPRESSION}.
func (d decoder) word(n yamltree.Node, what string) (Word, bool) {
	if n.Kind == yamltree.Mapping {
		members, flawed := d.members(n, exprTable)
		for _, m := range members {
			e := d.expr(m.Value, what)
			return Word{Text: e, Expr: true}, e.Written()
		}
		if !flawed {
			d.Errorf(n.Span, "write {expr: EXPRESSION}", "%s is empty", what)
		}
		return Word{}, false
	}
	if !d.Is(n, yamltree.String, what) {
		return Word{}, false
	}
	if strings.ContainsRune(n.Text, 0) {
		d.Errorf(n.Span, "", "%s has a NUL", what)
		return Word{}, false
	}
	return Word{Text: Text{Value: n.Text, Span: n.Span}}, true
}

// split takes a line apart into words, as a shell would that only knows quotes.
// What a shell would do beside that is an error: nobody does it here.
func (d decoder) split(line Text) []Word {
	place := func(pos syntax.Pos) Span { return yamltree.Place(d.Lines(), line.Span, int(pos.Offset())) }
	const hint = "write a list, [PROGRAM, ARGUMENT, …]; if it is meant for a shell, [sh, -c, \"…\"] with sh in can_run"
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line.Value), "")
	if err != nil {
		at, what := line.Span, err.Error()
		var parse syntax.ParseError
		if errors.As(err, &parse) {
			at, what = place(parse.Pos), parse.Text
		}
		d.Errorf(at, hint, "a command that cannot be split into words: %s", what)
		return nil
	}
	call, at, why := simple(file)
	if call == nil {
		d.Errorf(place(at), hint, "%s needs a shell, and none reads this line", why)
		return nil
	}
	var words []Word
	for _, w := range call.Args {
		value, at, why := literal(w)
		if why != "" {
			d.Errorf(place(at), hint, "%s needs a shell, and none reads this line", why)
			return nil
		}
		span := place(w.Pos())
		words = append(words, Word{Text: Text{Value: value, Span: span}})
	}
	if words[0].Value == "" {
		d.Errorf(words[0].Span, "", "the program is empty")
		return nil
	}
	return words
}

// simple gives the one simple command that a line is, or the place and the name
// of what makes it more.
func simple(file *syntax.File) (*syntax.CallExpr, syntax.Pos, string) {
	if len(file.Stmts) != 1 {
		if len(file.Stmts) == 0 {
			return nil, file.Pos(), "a comment"
		}
		return nil, file.Stmts[1].Pos(), "a second command"
	}
	s := file.Stmts[0]
	switch {
	case len(s.Redirs) > 0:
		return nil, s.Redirs[0].Pos(), "a redirection"
	case s.Background, s.Coprocess, s.Disown:
		return nil, s.Semicolon, "`&`"
	case s.Negated:
		return nil, s.Pos(), "`!`"
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	switch {
	case !ok:
		if b, ok := s.Cmd.(*syntax.BinaryCmd); ok {
			return nil, b.OpPos, fmt.Sprintf("`%s`", b.Op)
		}
		return nil, s.Pos(), "this"
	case len(call.Assigns) > 0:
		return nil, call.Assigns[0].Pos(), "a variable before the command (write it under env)"
	}
	return call, syntax.Pos{}, ""
}

// literal gives the value of a word, or the place and the name of what in it a
// shell would replace.
func literal(w *syntax.Word) (value string, at syntax.Pos, why string) {
	var b strings.Builder
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text, offset := unescape(part.Value, i == 0)
			if offset >= 0 {
				at := part.Pos()
				return "", syntax.NewPos(at.Offset()+uint(offset), at.Line(), at.Col()), fmt.Sprintf("`%c`", part.Value[offset])
			}
			b.WriteString(text)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", part.Pos(), "`$'`"
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, in := range part.Parts {
				lit, ok := in.(*syntax.Lit)
				if !ok {
					return "", in.Pos(), "`$`"
				}
				b.WriteString(unquote(lit.Value))
			}
		default:
			return "", part.Pos(), "`$`"
		}
	}
	return b.String(), syntax.Pos{}, ""
}

// unescape takes the backslashes out of an unquoted literal, and gives the
// offset of what a shell would replace in it, or -1.
func unescape(s string, first bool) (string, int) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case strings.IndexByte("*?[{", c) >= 0, c == '~' && first && i == 0:
			return "", i
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), -1
}

// unquote takes the backslashes out of a literal in double quotes.
func unquote(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
