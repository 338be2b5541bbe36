package yamltree

import (
	"errors"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Read reads the one document of the file. What it cannot make a node of is
// reported and [Broken]; a file without a value is [Null].
func (r *Reader) Read(data []byte) Node {
	src, ok := r.source(data)
	if !ok {
		return Node{}
	}
	tokens := lexer.Tokenize(src)
	if tk, what := tooMuch(tokens, r.Limits.Depth); tk != nil {
		r.Errorf(r.token(tk), "", "%s", what)
		return Node{}
	}
	docs, err := parse(tokens)
	if err != nil {
		r.syntax(err)
		return Node{}
	}
	return r.document(docs)
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
func (r *Reader) syntax(err error) {
	at, message := r.Span(1, 1, 1), err.Error()
	var located yaml.Error
	if errors.As(err, &located) {
		at, message = r.token(located.GetToken()), located.GetMessage()
	}
	r.Errorf(at, "", "not YAML: %s", message)
}

// document gives the root of the file's only document.
func (r *Reader) document(docs []*ast.DocumentNode) Node {
	root := Node{Span: r.Span(1, 1, 1), Kind: Null}
	for i, doc := range docs {
		if directive, ok := doc.Body.(*ast.DirectiveNode); ok {
			r.Errorf(r.token(directive.GetToken()), "remove the line", "a YAML directive")
			return Node{}
		}
		if i == 0 && doc.Body != nil {
			root = r.node(doc.Body)
		}
		if i > 0 {
			r.Errorf(r.token(start(doc)), "keep one", "a second document; %s is one", r.What)
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
func (r *Reader) node(n ast.Node) Node {
	if n == nil {
		return Node{Span: r.Span(1, 1, 1), Kind: Null}
	}
	out := Node{Span: r.token(n.GetToken()), Text: n.GetToken().Value}
	switch n := n.(type) {
	case *ast.NullNode:
		out.Kind = Null
	case *ast.BoolNode:
		out.Kind = Boolean
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.Kind = Number
	case *ast.StringNode:
		out.Kind = String
	case *ast.LiteralNode:
		out.Kind, out.Text = String, n.Value.Value
	case *ast.SequenceNode:
		out.Kind, out.Items = List, make([]Node, 0, len(n.Values))
		for _, item := range n.Values {
			out.Items = append(out.Items, r.node(item))
		}
	case *ast.MappingNode:
		out.Kind, out.Members = Mapping, make([]Member, 0, len(n.Values))
		if len(n.Values) > 0 && !n.IsFlowStyle {
			out.Span = r.token(n.Values[0].Key.GetToken()) // its own token is the first colon
		}
		for _, m := range n.Values {
			m, ok := r.member(m)
			if !ok {
				out.Flawed = true
				continue
			}
			out.Members = append(out.Members, m)
		}
	case *ast.MappingValueNode:
		return r.node(ast.Mapping(n.GetToken(), false, n))
	case *ast.AnchorNode:
		r.Errorf(out.Span, "write the value where it is used", "an anchor; they are not supported here")
		return r.node(n.Value)
	case *ast.TagNode:
		r.Errorf(out.Span, "remove it", "a tag; they are not supported here")
		return r.node(n.Value)
	case *ast.AliasNode:
		r.Errorf(out.Span, "write the value in its place", "an alias; they are not supported here")
	default:
		r.Errorf(out.Span, "", "a value of a kind that is not supported here: %q", out.Text)
	}
	return out
}

// member converts one member of a mapping, or reports a key that is no string.
func (r *Reader) member(m *ast.MappingValueNode) (Member, bool) {
	value := r.node(m.Value)
	key, at := Node{}, r.token(m.Key.GetToken())
	switch n := m.Key.(type) {
	case *ast.MergeKeyNode:
		r.Errorf(at, "write the keys out", "a merge key; they are not supported here")
	case *ast.MappingKeyNode:
		r.Errorf(at, "write key: value", "an explicit key; they are not supported here")
	case ast.Node:
		if key = r.node(n); key.Kind != String && key.Kind != Broken {
			r.Errorf(at, "quote it if it is meant as a name", "a key must be a string, not %s", key.Kind)
		}
	}
	return Member{key.Text, at, value}, key.Kind == String
}
