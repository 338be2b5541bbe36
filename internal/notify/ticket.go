package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Ticket is something odd that people should know of. Its texts have been screened.
type Ticket struct {
	// Digest is of what makes it one: in hexadecimal.
	Digest   string    `json:"digest"`
	Playbook string    `json:"playbook"`
	Step     string    `json:"step"`
	Kind     string    `json:"kind"`
	Run      string    `json:"run"`              // in which it came up
	What     string    `json:"what"`             // in a sentence
	Detail   string    `json:"detail,omitempty"` // what else there is to say, such as JSON
	At       time.Time `json:"at"`
}

// Filed is a ticket that is kept.
type Filed struct {
	Ticket
	ID string `json:"id"`
}

// title names the ticket in a line.
func (t Ticket) title() string {
	line := fmt.Sprintf("%s: step %s: %s", t.Playbook, t.Step, t.Kind)
	if rs := []rune(line); len(rs) > 120 {
		line = string(rs[:119]) + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, line)
}

// markdown is the ticket for people. What it quotes has no meaning of its own there.
func (f Filed) markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\nRun `%s`, at %s.\n", escaped(f.What), f.Run, f.At.UTC().Format(time.RFC3339))
	if f.Detail != "" {
		fence := "```"
		for strings.Contains(f.Detail, fence) {
			fence += "`"
		}
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n", fence, strings.TrimRight(f.Detail, "\n"), fence)
	}
	fmt.Fprintf(&b, "\nSee `stoplog why %s`. Digest `%s`.\n", f.Run, f.Digest)
	return b.Bytes()
}

// frontMatter is the ticket's members, as YAML: each value is JSON, which YAML reads.
func (f Filed) frontMatter() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("---\n")
	for _, m := range [][2]string{
		{"id", f.ID}, {"title", f.title()}, {"playbook", f.Playbook}, {"step", f.Step}, {"kind", f.Kind}, {"run", f.Run},
		{"digest", f.Digest}, {"at", f.At.UTC().Format(time.RFC3339)}, {"status", "open"},
	} {
		v, err := json.Marshal(m[1])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s: %s\n", m[0], v)
	}
	b.WriteString("---\n\n")
	return b.Bytes(), nil
}

// escaped is text in one line of Markdown that calls nobody and links nowhere.
func escaped(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "<", "&lt;", "[", "\\[", "]", "\\]", "`", "'", "@", "@\u200b", "#", "\\#").Replace(s)
}
