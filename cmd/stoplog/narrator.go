package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/diag"
)

// A narrator shows the events of a run to a person: what the agent says on stdout,
// as it comes, and what happens beside it as talk on stderr.
type narrator struct {
	w    *world
	tame bool // stdout is a terminal: text is shown and not obeyed
	all  bool // everything on stdout, thoughts too: the story is the result

	open bool // stdout stands in the middle of a line
}

// show shows an event.
func (n *narrator) show(e chat.Event) error {
	switch e := e.(type) {
	case chat.Delta:
		return n.delta(e)
	case chat.Run:
		return n.talk("run %s, profile %s", e.ID, e.Profile)
	case chat.Step:
		if e.ID != "" {
			return n.talk("%s", spokenStep(e))
		}
		if e.Step > 1 || n.all {
			return n.talk("step %d", e.Step)
		}
	case chat.Tool:
		return n.talk("%s", card(e))
	case chat.Verdict:
		if a := e.Allowed; a != nil {
			return n.talk("guard %s: allowed by %s until %s (rule %s): %s", e.Guard, a.By, a.Until.Format(time.RFC3339), e.Rule, a.Why)
		}
		return n.talk("guard %s: %s (rule %s)", e.Guard, e.Status, e.Rule)
	case chat.Approval:
		return n.talk("asks for approval %s: %s", e.ID, e.What)
	case chat.Question:
		return n.talk("asks %s: %s", e.ID, e.Text)
	case chat.Superseded:
		return n.talk("the answer above was lost on its way and counts for nothing: asking again")
	case chat.Done:
		return n.done(e)
	}
	return nil
}

func (n *narrator) delta(e chat.Delta) error {
	if !chat.Answers(e.Channel) {
		if n.all {
			return n.talk("%s: %s", e.Channel, e.Text)
		}
		return nil
	}
	return n.text(e.Text)
}

// text writes what is said.
func (n *narrator) text(s string) error {
	if s == "" {
		return nil
	}
	if n.tame {
		s = tame(s)
	}
	n.open = !strings.HasSuffix(s, "\n")
	_, err := io.WriteString(n.w.stdout, s)
	return err
}

// end ends the line that stdout stands in.
func (n *narrator) end() error {
	if !n.open {
		return nil
	}
	n.open = false
	_, err := io.WriteString(n.w.stdout, "\n")
	return err
}

// talk says what happens, on a line of its own.
func (n *narrator) talk(format string, args ...any) error {
	if err := n.end(); err != nil {
		return err
	}
	if !n.all {
		n.w.voice.sayf(format, args...)
		return nil
	}
	return tell(n.w, "- %s", diag.Line(fmt.Sprintf(format, args...)))
}

// done closes the story. What a run that was stopped says is part of the result:
// it follows what was shown.
func (n *narrator) done(d chat.Done) error {
	if err := n.end(); err != nil {
		return err
	}
	switch {
	case d.Waits():
		return n.talk("%s", d.Message)
	case d.Success || d.Message == "":
		return nil
	}
	return n.textLine(d.Message)
}

func (n *narrator) textLine(s string) error {
	if err := n.text(s); err != nil {
		return err
	}
	return n.end()
}

// cardWidth is how much of arguments and results a card shows.
const cardWidth = 200

// card is a tool call in a line.
func card(t chat.Tool) string {
	line := fmt.Sprintf("call %d.%d %s", t.Step, t.Call, t.Tool)
	if t.Args != "" {
		line += " " + cut(t.Args)
	}
	line += ": " + strings.ReplaceAll(string(t.State), "_", " ")
	if t.Result != "" {
		line += ": " + cut(t.Result)
	}
	return line
}

func cut(s string) string {
	first, _, more := strings.Cut(s, "\n")
	if rs := []rune(first); len(rs) > cardWidth {
		first, more = string(rs[:cardWidth]), true
	}
	if more {
		first += " …"
	}
	return first
}
