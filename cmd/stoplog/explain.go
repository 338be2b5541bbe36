package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/playbook"
)

type explainCommand struct {
	Topic string `arg:"" optional:"" help:"step-type, or the id of a check."`
	JSON  bool   `help:"Give the result as JSON."`
}

func (*explainCommand) Help() string {
	return `Says how to choose between observer, claude and pause (step-type), or what a check of stoplog lint is about and what to do. Without a topic, lists them.

Examples:

    stoplog explain step-type
    stoplog explain pause-required

Exit codes: 0, or 2 for a topic that is not there.`
}

// stepTypeTopic is the topic that is no check.
const stepTypeTopic = "step-type"

// topicJSON is what there is to say about a topic.
type topicJSON struct {
	Topic   string `json:"topic"`
	Summary string `json:"summary"`
	Explain string `json:"explain,omitempty"`
}

func (c *explainCommand) Run(w *world) error {
	if c.Topic == "" {
		return c.list(w)
	}
	said := topicJSON{Topic: c.Topic}
	if c.Topic == stepTypeTopic {
		said.Summary, said.Explain = "how to choose between observer, claude and pause", playbook.StepType
	} else {
		check, ok := playbook.Lookup(c.Topic)
		if !ok {
			return unknownTopic(c.Topic)
		}
		said.Summary, said.Explain = check.Summary, check.Explain
	}
	if c.JSON {
		return newEncoder(w.stdout).Encode(said)
	}
	if c.Topic == stepTypeTopic {
		_, err := fmt.Fprint(w.stdout, said.Explain)
		return err
	}
	_, err := fmt.Fprintf(w.stdout, "%s: %s\n\n%s\n", said.Topic, said.Summary, fold(said.Explain, 80))
	return err
}

func unknownTopic(topic string) error {
	ids := []string{stepTypeTopic}
	for _, check := range playbook.Checks {
		ids = append(ids, check.ID)
	}
	fail := failf(exitUsage, "there is nothing to explain about %q", topic)
	if near := diag.Suggest(topic, ids); near != "" {
		return fail.hint("stoplog explain %s", near)
	}
	return fail.hint("stoplog explain lists what there is")
}

func (c *explainCommand) list(w *world) error {
	all := []topicJSON{{Topic: stepTypeTopic, Summary: "how to choose between observer, claude and pause"}}
	for _, check := range playbook.Checks {
		all = append(all, topicJSON{Topic: check.ID, Summary: check.Summary})
	}
	if c.JSON {
		return json.NewEncoder(w.stdout).Encode(all)
	}
	table := tabwriter.NewWriter(w.stdout, 0, 8, 2, ' ', 0)
	for _, t := range all {
		fmt.Fprintf(table, "%s\t%s\n", t.Topic, t.Summary)
	}
	return table.Flush()
}

// fold breaks a text into lines of at most width bytes, at its spaces.
func fold(text string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
