package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/stoplog/stoplog/internal/diag"
)

// A file larger or deeper than this is no configuration. The parser needs the
// bounds: its time and memory are quadratic in the depth, and in the size of
// some files that are no configuration (64 KiB of "[" cost it 11 seconds).
const (
	maxFile  = 64 << 10
	maxDepth = 16
)

// node is one value of the file, with its place. It is all that the rest of the
// package knows of YAML.
type node struct {
	span    diag.Span
	kind    kind
	text    string   // a scalar's value, unquoted
	items   []node   // a list's
	members []member // a mapping's, in order, duplicates and all
	flawed  bool     // a mapping's: a member was reported and left out
}

type member struct {
	key   string
	span  diag.Span
	value node
}

type kind uint8

const (
	broken kind = iota // already reported: whoever reads it stays silent
	null
	boolean
	number
	text
	list
	mapping
)

var kindNames = [...]string{"broken", "nothing", "true or false", "a number", "a string", "a list", "a mapping"}

func (k kind) String() string { return kindNames[k] }

// reader turns a file's bytes into nodes and collects what is wrong with it.
type reader struct {
	file  string
	lines []string // for the source line of a diagnostic
	list  diag.List
}

// errorf adds a diagnostic. The hint may be empty.
func (r *reader) errorf(at diag.Span, hint, format string, args ...any) {
	r.list = append(r.list, r.diagnostic(at, hint, format, args...))
}

func (r *reader) diagnostic(at diag.Span, hint, format string, args ...any) diag.Diagnostic {
	d := diag.Diagnostic{Span: at, Message: fmt.Sprintf(format, args...), Hint: hint}
	if 0 < at.Line && at.Line <= len(r.lines) {
		d.Source = maskSecrets(r.lines[at.Line-1])
	}
	return d
}

// at is a place in the file, moved into it where a parser pointed past its end.
func (r *reader) at(line, col, width int) diag.Span {
	line = max(1, min(line, len(r.lines)))
	longest := 0
	if line <= len(r.lines) {
		longest = utf8.RuneCountInString(r.lines[line-1])
	}
	return diag.Span{
		Pos:   diag.Pos{File: r.file, Line: line, Col: max(1, min(col, longest+1))},
		Width: max(1, width),
	}
}

func (r *reader) token(tk *token.Token) diag.Span {
	if tk == nil || tk.Position == nil {
		return r.at(1, 1, 1)
	}
	width, _, _ := strings.Cut(strings.TrimSpace(tk.Origin), "\n")
	return r.at(tk.Position.Line, tk.Position.Column, utf8.RuneCountInString(width))
}

// tree reads the one document of the file. What it cannot make a node of is
// reported and broken.
func (r *reader) tree(data []byte) node {
	src, ok := r.source(data)
	if !ok {
		return node{}
	}
	tokens := lexer.Tokenize(src)
	if tk := tooDeep(tokens); tk != nil {
		r.errorf(r.token(tk), "", "nested more than %d levels deep", maxDepth)
		return node{}
	}
	docs, err := parse(tokens)
	if err != nil {
		r.syntax(err)
		return node{}
	}
	return r.document(docs)
}

// source makes the bytes a text that the parser sees as people do: UTF-8
// without a byte order mark, lines ended by LF, no tab in an indentation.
func (r *reader) source(data []byte) (string, bool) {
	if len(data) > maxFile {
		r.errorf(r.at(1, 1, 1), "", "the file has %d bytes, want at most %d", len(data), maxFile)
		return "", false
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		r.errorf(r.at(1, 1, 1), "save it as UTF-8", "the file is in UTF-16")
		return "", false
	}
	src := strings.TrimPrefix(string(data), "\ufeff")
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	r.lines = strings.Split(src, "\n")
	before := len(r.list)
	for i, line := range r.lines {
		r.line(i+1, line)
	}
	return src, len(r.list) == before
}

// line reports the first rune of a line that a configuration does not hold.
func (r *reader) line(number int, line string) {
	indented, col := true, 0
	for i, c := range line {
		col++
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd"):
			r.errorf(r.at(number, col, 1), "save it as UTF-8", "byte 0x%02x is not UTF-8", line[i])
		case c == '\t' && indented && strings.TrimLeft(line, " \t") != "":
			r.errorf(r.at(number, col, 1), "indent with spaces", "a tab in the indentation")
		case c != '\t' && unicode.IsControl(c), c == '\ufeff':
			r.errorf(r.at(number, col, 1), "", "control character %U", c)
		default:
			indented = indented && c == ' '
			continue
		}
		return
	}
}

// tooDeep gives the token at which the nesting exceeds maxDepth.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, line := 0, 0
	var block []int // the columns of the block collections that are open
	for _, tk := range tokens {
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow = max(flow-1, 0)
		}
		opens := tk.Type == token.SequenceEntryType || tk.Type == token.MappingKeyType
		if opens && flow > 0 { // not YAML, and the parser would go down with it
			flow++
		} else if opens || flow == 0 && tk.Position.Line != line {
			for len(block) > 0 && block[len(block)-1] >= tk.Position.Column {
				block = block[:len(block)-1]
			}
			block = append(block, tk.Position.Column)
		}
		line = tk.Position.Line
		if flow+len(block) > maxDepth {
			return tk
		}
	}
	return nil
}

// parse is the parser's, but for a panic: that is one more way in which it says
// that it cannot read a file.
func parse(tokens token.Tokens) (docs []*ast.DocumentNode, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the parser cannot read it")
		}
	}()
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, err
	}
	return file.Docs, nil
}

// syntax reports what the parser said.
func (r *reader) syntax(err error) {
	at, message := r.at(1, 1, 1), err.Error()
	var located yaml.Error
	if errors.As(err, &located) {
		at, message = r.token(located.GetToken()), located.GetMessage()
	}
	r.errorf(at, "", "not YAML: %s", message)
}

// document gives the root of the file's only document.
func (r *reader) document(docs []*ast.DocumentNode) node {
	root := node{span: r.at(1, 1, 1), kind: null}
	for i, doc := range docs {
		if directive, ok := doc.Body.(*ast.DirectiveNode); ok {
			r.errorf(r.token(directive.GetToken()), "remove the line", "a YAML directive")
			return node{}
		}
		if i == 0 && doc.Body != nil {
			root = r.node(doc.Body)
		}
		if i > 0 {
			r.errorf(r.token(start(doc)), "keep one", "a second document; a configuration is one")
			break
		}
	}
	return root
}

// start is a document's first token.
func start(doc *ast.DocumentNode) *token.Token {
	if doc.Start == nil && doc.Body != nil {
		return doc.Body.GetToken()
	}
	return doc.Start
}

// node converts one value.
func (r *reader) node(n ast.Node) node {
	if n == nil {
		return node{span: r.at(1, 1, 1), kind: null}
	}
	out := node{span: r.token(n.GetToken()), text: n.GetToken().Value}
	switch n := n.(type) {
	case *ast.NullNode:
		out.kind = null
	case *ast.BoolNode:
		out.kind = boolean
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.kind = number
	case *ast.StringNode:
		out.kind = text
	case *ast.LiteralNode:
		out.kind, out.text = text, n.Value.Value
	case *ast.SequenceNode:
		out.kind = list
		for _, item := range n.Values {
			out.items = append(out.items, r.node(item))
		}
	case *ast.MappingNode:
		out.kind = mapping
		if len(n.Values) > 0 && !n.IsFlowStyle {
			out.span = r.token(n.Values[0].Key.GetToken()) // its own token is the first colon
		}
		for _, m := range n.Values {
			m, ok := r.member(m)
			if !ok {
				out.flawed = true
				continue
			}
			out.members = append(out.members, m)
		}
	case *ast.MappingValueNode:
		return r.node(ast.Mapping(n.GetToken(), false, n))
	case *ast.AnchorNode:
		r.errorf(out.span, "write the value where it is used", "an anchor; they are not supported here")
		return r.node(n.Value)
	case *ast.TagNode:
		r.errorf(out.span, "remove it", "a tag; they are not supported here")
		return r.node(n.Value)
	case *ast.AliasNode:
		r.errorf(out.span, "write the value in its place", "an alias; they are not supported here")
	default:
		r.errorf(out.span, "", "a value of a kind that is not supported here: %q", out.text)
	}
	return out
}

// member converts one member of a mapping, or reports a key that is no string.
func (r *reader) member(m *ast.MappingValueNode) (member, bool) {
	value := r.node(m.Value)
	key, at := node{}, r.token(m.Key.GetToken())
	switch n := m.Key.(type) {
	case *ast.MergeKeyNode:
		r.errorf(at, "write the keys out, or let a profile extend another", "a merge key; they are not supported here")
	case *ast.MappingKeyNode:
		r.errorf(at, "write key: value", "an explicit key; they are not supported here")
	case ast.Node:
		if key = r.node(n); key.kind != text && key.kind != broken {
			r.errorf(at, "quote it if it is meant as a name", "a key must be a string, not %s", key.kind)
		}
	}
	return member{key.text, at, value}, key.kind == text
}
