package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

// A printer shows the demo to a person: nothing of it where the result is
// wanted as JSON.
type printer struct {
	out   *bufio.Writer
	color bool
	err   error // of the first write that failed
}

func newPrinter(w *world, quiet bool) *printer {
	if quiet {
		return &printer{out: bufio.NewWriter(io.Discard)}
	}
	return &printer{out: bufio.NewWriter(w.stdout), color: isTerminal(w.stdout) && w.getenv("NO_COLOR") == ""}
}

func (p *printer) printf(format string, args ...any) {
	fmt.Fprintf(p.out, format, args...)
	if err := p.out.Flush(); err != nil && p.err == nil {
		p.err = err
	}
}

const (
	bold    = "\x1b[1m"
	reverse = "\x1b[7m"
	dim     = "\x1b[2m"
)

func (p *printer) style(code, text string) string {
	if !p.color {
		return text
	}
	return code + text + "\x1b[0m"
}

func (p *printer) heading(format string, args ...any) {
	p.printf("\n%s\n\n", p.style(bold, fmt.Sprintf(format, args...)))
}

var placeholder = regexp.MustCompile(`\[redacted:[a-z0-9-]+\]`)

// marked shows where something was replaced.
func (p *printer) marked(text string) string {
	return placeholder.ReplaceAllStringFunc(plain(text), func(s string) string { return p.style(reverse, s) })
}

// plain shows a model's text without obeying it.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '�'
		}
		return r
	}, text)
}

// arrived shows a piece of a streamed answer, and before each replacement how
// many bytes were held back for it.
func (p *printer) arrived(text string, replaced []int64) {
	for _, n := range replaced {
		at := placeholder.FindStringIndex(text)
		p.printf("%s%s%s", plain(text[:at[0]]), p.style(dim, fmt.Sprintf("|held %d|", n)), p.style(reverse, text[at[0]:at[1]]))
		text = text[at[1]:]
	}
	p.printf("%s", plain(text))
}

func (p *printer) ended(a answer) {
	p.printf("\n\n   finish_reason %s", a.Finish)
	p.outcome(a)
}

func (p *printer) outcome(a answer) {
	if a.Error != "" {
		p.printf(", error: %s", plain(a.Error))
	}
	if a.Stoplog == nil {
		p.printf(", nothing to report\n")
		return
	}
	p.printf(", stoplog")
	for _, k := range []string{"status", "guard", "rule", "reason", "run"} {
		if v, ok := a.Stoplog[k]; ok {
			p.printf(" %s=%v", k, v)
		}
	}
	p.printf("\n")
}

func (p *printer) whole(a answer) {
	p.printf("%s", p.marked(a.Text))
	p.ended(a)
}

func (p *printer) compare(d demo) {
	same := "The same words, end and outcome"
	if !d.Equal {
		same = "NOT the same"
	}
	p.printf("\n   %s: %d bytes streamed, %d unstreamed.\n   The longest span that was replaced had %d bytes. Beside that, whenever text came %.1f bytes waited on average, %d at most.\n",
		p.style(bold, same), len(d.Streamed.Text), len(d.Unstreamed.Text), d.Held.Replaced, d.Held.Mean, d.Held.Most)
}

// records shows what was recorded, a line a fact.
func (p *printer) records(rs []govern.Record) {
	p.heading("4  The record. A verdict was on it before the text that it is about could be seen.")
	run := ""
	for _, r := range rs {
		if r.Run != run {
			run = r.Run
			p.printf("   %s\n", run)
		}
		switch f := r.Fact.(type) {
		case govern.Started:
			p.printf("     started   profile %s, upstream %s, model %s, stream %v\n", f.Profile, f.Upstream, f.Model, f.Stream)
		case govern.Verdict:
			what := f.Verdict.String()
			if f.Mode != guard.Enforce {
				what = "would " + what
			}
			p.printf("     verdict   %-12s %-20s %s [%d,%d) fingerprint %s\n", what, f.Rule, f.Channel, f.Start, f.End, f.Fingerprint)
		case govern.Settled:
			p.printf("     settled   %s (%s), %d tokens in, %d out%s\n", f.Status, f.Reason, f.Usage.Input, f.Usage.Output, estimated(f.Usage.Estimated))
		}
	}
}

func estimated(yes bool) string {
	if yes {
		return " (estimated)"
	}
	return ""
}

func (p *printer) next() {
	p.heading("Next")
	p.printf("%s", `   your own key     stoplog serve      then base URL http://127.0.0.1:4180/openai/v1 or …/anthropic
   a local Ollama   stoplog serve --config examples/ollama.yaml
   any log          kubectl logs -f app | stoplog guard
   what holds       stoplog check-config
`)
}
