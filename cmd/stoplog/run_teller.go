package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/diag"
)

// A teller shows a playbook's run as it goes: each line that a step says, and where
// steps stand, as talk; at the end how they stand is the result. At a terminal the
// newest line of what runs stands below the rest, and is written over.
type teller struct {
	w    *world
	json bool
	live bool // talk goes to a terminal

	steps  map[int]chat.Step
	lines  map[string]string // by channel of a step: a line whose end has not come
	status bool              // the last line is to be written over
}

func newTeller(w *world, json bool) *teller {
	return &teller{w: w, json: json, live: isTerminal(w.voice.w), steps: map[int]chat.Step{}, lines: map[string]string{}}
}

func (t *teller) item(item chat.Item) error {
	if t.json {
		return writeItem(newEncoder(t.w.stdout), item)
	}
	switch e := item.Event.(type) {
	case chat.Run:
		t.say("run %s of playbook %s, profile %s", e.ID, e.Playbook, e.Profile)
	case chat.Step:
		t.step(e)
	case chat.Delta:
		t.text(e)
	case chat.Approval:
		t.say("asks for approval %s: %s", e.ID, e.What)
	case chat.Done:
		if e.Message != "" {
			t.say("%s", e.Message)
		}
	}
	return nil
}

// step shows where a step stands, where that is news.
func (t *teller) step(s chat.Step) {
	before, known := t.steps[s.Step]
	t.steps[s.Step] = s
	if known && before.State == s.State && before.Attempt == s.Attempt || s.State == "pending" {
		return
	}
	for _, channel := range []string{"stdout", "stderr", "text"} {
		t.rest(s, channel)
	}
	t.say("%s", spokenStep(s))
}

// spokenStep is where a step stands, in a line.
func spokenStep(s chat.Step) string {
	line := fmt.Sprintf("%s: %s", s.ID, strings.ReplaceAll(s.State, "_", " "))
	if s.State == "running" && s.Attempt > 1 {
		line += fmt.Sprintf(" (attempt %d)", s.Attempt)
	}
	for _, more := range [][2]string{{"verdict", s.Verdict}, {"observer", s.Observer}, {"ticket", s.Ticket}} {
		if more[1] != "" && s.State != "running" {
			line += fmt.Sprintf(", %s %s", more[0], more[1])
		}
	}
	if s.Why != "" {
		line += ": " + s.Why
	}
	return line
}

// text shows whole lines of what a step says.
func (t *teller) text(d chat.Delta) {
	key := fmt.Sprintf("%d/%s", d.Step, d.Channel)
	text := t.lines[key] + d.Text
	for {
		line, rest, whole := strings.Cut(text, "\n")
		if !whole {
			break
		}
		t.say("%s | %s", t.steps[d.Step].ID, line)
		text = rest
	}
	t.lines[key] = text
	if t.live && text != "" {
		t.over()
		fmt.Fprintf(t.w.voice.w, "%s | %s", diag.Line(t.steps[d.Step].ID), diag.Line(cut(text)))
		t.status = true
	}
}

// rest shows what is left of a channel.
func (t *teller) rest(s chat.Step, channel string) {
	key := fmt.Sprintf("%d/%s", s.Step, channel)
	if line := t.lines[key]; line != "" {
		delete(t.lines, key)
		t.say("%s | %s", s.ID, line)
	}
}

// over takes the line away that is to be written over.
func (t *teller) over() {
	if t.status {
		_, _ = io.WriteString(t.w.voice.w, "\r\x1b[2K") // a terminal that is gone has nobody to be told
		t.status = false
	}
}

func (t *teller) say(format string, args ...any) {
	t.over()
	t.w.voice.sayf(format, args...)
}

// end is the result: how the steps stand.
func (t *teller) end(all []chat.Step) error {
	t.over()
	if t.json {
		return nil
	}
	table := tabwriter.NewWriter(t.w.stdout, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.ID, s.Type, s.State, diag.Line(s.Why))
	}
	return table.Flush()
}
