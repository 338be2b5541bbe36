package wire

import (
	"strings"

	"github.com/stoplog/stoplog/guard"
)

// prompt is what the caller tells the model before all else: the system prompt,
// wherever the format has it, in order, a line for each text.
func (b *document) prompt() string {
	system := map[int32]bool{} // the messages of the one who runs the model
	for _, l := range b.leaves {
		if p := l.at(); l.token == '"' && (p == "messages[].role" || p == "input[].role") {
			role := string(b.content(b.doc, &l))
			system[l.idx[0]] = role == "system" || role == "developer"
		}
	}
	var texts []string
	for _, l := range b.leaves {
		if l.kind != Text || l.token != '"' {
			continue
		}
		switch p := l.at(); {
		case p == "system", p == "system[].text", p == "instructions",
			(strings.HasPrefix(p, "messages[].content") || strings.HasPrefix(p, "input[].content")) && system[l.idx[0]]:
			texts = append(texts, string(b.content(b.doc, &l)))
		}
	}
	return strings.Join(texts, "\n")
}

// at is where a leaf stands, by the names of a table; empty if it knows none.
func (l *leaf) at() string {
	if l.node == nil {
		return ""
	}
	return l.node.path
}

// textKind says what a text of a request is: what a tool has returned, a document,
// or words.
func (l *leaf) textKind(role string) guard.Kind {
	p := l.at()
	switch {
	case l.kind == JSON:
		return guard.ToolArgs
	case role == "tool",
		strings.HasPrefix(p, "messages[].content[].content"), // Anthropic's tool_result
		strings.HasPrefix(p, "input[].output"):               // of OpenAI's responses
		return guard.ToolResult
	case strings.Contains(p, ".source."), strings.Contains(p, "file_data"):
		return guard.Document
	}
	return guard.Text
}
