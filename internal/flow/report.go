package flow

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/journal"
)

// Reports of a run, for people and for machines that build. They are made of what
// the journal has: screened text, and no more of it than is of use.

// reportedLines is how much of the end of what a step said stands in a report.
const reportedLines = 20

// WriteMarkdown writes a report for people.
func WriteMarkdown(w io.Writer, row journal.Run, s steps.State) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Playbook %s: %s\n\n", cell(s.Book.Name), row.Status)
	fmt.Fprintf(&b, "Run `%s`, started by %s at %s", row.Run, cell(row.Starter), row.Created.Format(time.RFC3339))
	if !row.Ended.IsZero() {
		fmt.Fprintf(&b, ", ended after %s", row.Ended.Sub(row.Created).Round(time.Millisecond))
	}
	b.WriteString(".\n")
	if row.Reason != "" && row.Status != journal.Completed {
		fmt.Fprintf(&b, "Reason: `%s`.\n", row.Reason)
	}
	if s.Message != "" {
		fmt.Fprintf(&b, "\n> %s\n", cell(s.Message))
	}
	b.WriteString("\n| step | type | state | attempts | took | why |\n|---|---|---|---|---|---|\n")
	for i, p := range s.Plan.Steps {
		at := s.Steps[i]
		fmt.Fprintf(&b, "| %s | %s | **%s** | %d | %s | %s |\n",
			cell(p.ID), p.Type, at.Standing(), at.Started, took(at.Result.Took), cell(whyOf(at)))
	}
	if u := s.Usage; u.Input+u.Output > 0 {
		estimated := ""
		if u.Estimated {
			estimated = " (estimated)"
		}
		fmt.Fprintf(&b, "\nTokens: %d in, %d out%s.\n", u.Input, u.Output, estimated)
	}
	for i, p := range s.Plan.Steps {
		writeSaid(&b, p, s.Steps[i])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeSaid writes what a step that did not pass, or whose word counts, has said.
func writeSaid(b *strings.Builder, p steps.Planned, at *steps.Step) {
	said := lastLines(at.Result.Stdout+at.Result.Stderr, reportedLines)
	if len(at.Result.Output) > 0 {
		said = string(at.Result.Output)
	}
	if said == "" || at.Standing() == steps.Passed && p.Type == steps.Run {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", cell(p.ID))
	fence := "```"
	for strings.Contains(said, fence) {
		fence += "`"
	}
	fmt.Fprintf(b, "%s\n%s\n%s\n", fence, strings.TrimRight(said, "\n"), fence)
}

// whyOf says of a step what its state does not.
func whyOf(at *steps.Step) string {
	var parts []string
	if at.Result.Verdict != "" {
		parts = append(parts, "verdict "+at.Result.Verdict)
	}
	if at.Observed.Verdict != "" {
		parts = append(parts, "observer "+at.Observed.Verdict)
	}
	if at.Ticket != "" {
		parts = append(parts, "ticket "+at.Ticket)
	}
	if at.Why != "" {
		parts = append(parts, at.Why)
	}
	return strings.Join(parts, "; ")
}

// cell is text in one line of a table, without a meaning of its own.
func cell(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "|", `\|`, "<", "&lt;", "`", "'").Replace(s)
}

func took(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.Round(time.Millisecond).String()
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// The form of JUnit's reports, as far as its readers agree on it.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		ID       string      `xml:"id,attr"`
		Time     string      `xml:"timestamp,attr"`
		Took     string      `xml:"time,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string     `xml:"name,attr"`
		Class   string     `xml:"classname,attr"`
		Took    string     `xml:"time,attr"`
		Failure *junitText `xml:"failure"`
		Error   *junitText `xml:"error"`
		Skipped *junitText `xml:"skipped"`
		Out     string     `xml:"system-out,omitempty"`
		Err     string     `xml:"system-err,omitempty"`
	}
	junitText struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
	}
)

// WriteJUnit writes a report as JUnit's XML: a case for each step. What policy
// stopped is a failure, what broke an error, and what did not run is skipped.
func WriteJUnit(w io.Writer, row journal.Run, s steps.State) error {
	suite := junitSuite{Name: s.Book.Name, ID: string(row.Run), Time: row.Created.Format(time.RFC3339), Took: "0"}
	if !row.Ended.IsZero() {
		suite.Took = seconds(row.Ended.Sub(row.Created))
	}
	for i, p := range s.Plan.Steps {
		at := s.Steps[i]
		c := junitCase{
			Name: p.ID, Class: s.Book.Name + "." + string(p.Type), Took: seconds(at.Result.Took),
			Out: printable(lastLines(at.Result.Stdout, reportedLines)), Err: printable(lastLines(at.Result.Stderr, reportedLines)),
		}
		text := &junitText{Message: printable(whyOf(at)), Type: string(at.Standing())}
		switch at.Standing() {
		case steps.Passed:
		case steps.Blocked:
			c.Failure = text
			suite.Failures++
		case steps.Skipped, steps.Pending, steps.Waiting, steps.Running:
			c.Skipped = text
			suite.Skipped++
		default:
			c.Error = text
			suite.Errors++
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(junitSuites{Suite: suite}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// printable is text without what XML has no place for.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r >= ' ' && r != 0xFFFE && r != 0xFFFF {
			return r
		}
		return '\uFFFD'
	}, s)
}
