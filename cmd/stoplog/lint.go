package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/prompt"
	"github.com/stoplog/stoplog/playbook"
)

type lintCommand struct {
	Files  []string `arg:"" optional:"" name:"file" help:"The playbooks to check."`
	Root   string   `placeholder:"DIR" help:"The project's root, where prompts and scopes begin (default: the working folder)."`
	Format string   `enum:"text,json,github" default:"text" help:"text, json, or github: annotations of a workflow."`
	JSON   bool     `help:"As --format json."`
	Schema bool     `help:"Write the JSON Schema of playbooks, for editors, and check nothing."`
}

func (*lintCommand) Help() string {
	return `Checks playbooks before they run: their form, the models and prompts that they name, what they let a step read, write and run, and that a person is asked on every way to what cannot be undone. All that is wrong is shown at once, with its place and the id of the check; stoplog explain ID says why, stoplog explain step-type how to choose between observer, claude and pause. stoplog run refuses what this calls an error.

Prompts and other playbooks are looked up in the root: --root, else the working folder if the file is in it, else the file's own folder.

With --json the result is one object: files, each with findings (check, severity, file, line, col, width, message, hint), errors and warnings.

For an editor, write the schema to a file and name it in the first line of a playbook:

    stoplog lint --schema > playbook.schema.json
    # yaml-language-server: $schema=playbook.schema.json

Examples:

    stoplog lint playbooks/*.yaml
    stoplog lint --format github playbooks/*.yaml

Exit codes: 0 no errors (there may be warnings), 2 a file does not check, 1 it can't be read.`
}

// linted is a file's findings.
type linted struct {
	file  string
	found playbook.Findings
}

func (c *lintCommand) Run(w *world) error {
	if c.Schema {
		_, err := w.stdout.Write(playbook.EditorSchema())
		return err
	}
	if len(c.Files) == 0 {
		return failf(exitUsage, "lint: no file is named").hint("stoplog lint playbooks/*.yaml")
	}
	if c.JSON {
		c.Format = "json"
	}
	all := make([]linted, 0, len(c.Files))
	for _, file := range c.Files {
		_, found, err := lintPlaybook(file, c.Root)
		if err != nil {
			return err
		}
		all = append(all, linted{file, found})
	}
	if err := writeLinted(w.stdout, c.Format, all); err != nil {
		return err
	}
	return verdictOf(w, all)
}

// lintPlaybook reads and checks a playbook. root is as [lintCommand]'s.
func lintPlaybook(file, root string) (*playbook.Playbook, playbook.Findings, error) {
	dir, inside, err := projectOf(file, root)
	if err != nil {
		return nil, nil, failf(exitError, "find the root of %s: %w", file, err)
	}
	project, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, failf(exitError, "open the root of %s: %w", file, err)
	}
	defer project.Close()
	tree := project.FS()
	data, err := prompt.Read(tree, inside, playbook.MaxBytes)
	if err != nil {
		return nil, nil, failf(exitError, "read playbook: %w", err).hint("name a file that is there, or its root with --root")
	}
	prices := budget.List()
	pb, found := playbook.Lint(file, data, playbook.Options{
		Tree: tree, Path: inside,
		Known: func(p playbook.Pin) bool { _, ok := prices.Of(p.Sent()); return ok },
	})
	return pb, found, nil
}

// projectOf gives the root of a playbook's project, and its path in it.
func projectOf(file, root string) (dir, inside string, err error) {
	named := root != ""
	if !named {
		root = "."
	}
	if dir, err = filepath.Abs(root); err != nil {
		return "", "", err
	}
	full, err := filepath.Abs(file)
	if err != nil {
		return "", "", err
	}
	rel, err := filepath.Rel(dir, full)
	if err == nil && filepath.IsLocal(rel) {
		return dir, filepath.ToSlash(rel), nil
	}
	if named {
		return "", "", fmt.Errorf("the file is not in %s", root)
	}
	return filepath.Dir(full), filepath.Base(full), nil
}

// verdictOf is the end of lint: an error if a file does not check.
func verdictOf(w *world, all []linted) error {
	var bad []string
	mistakes, warnings := 0, 0
	for _, l := range all {
		n := len(l.found.Errors())
		mistakes, warnings = mistakes+n, warnings+len(l.found)-n
		if n > 0 {
			bad = append(bad, l.file)
		}
	}
	switch len(bad) {
	case 0:
	case 1:
		return failf(exitUsage, "%s does not check: %s, %s", bad[0], count(mistakes, "mistake"), count(warnings, "warning"))
	default:
		return failf(exitUsage, "%d of %s do not check: %s, %s", len(bad), count(len(all), "file"), count(mistakes, "mistake"), count(warnings, "warning"))
	}
	if warnings > 0 {
		w.voice.sayf("no mistake in %s, and %s", count(len(all), "file"), count(warnings, "warning"))
	}
	return nil
}

func writeLinted(out io.Writer, format string, all []linted) error {
	switch format {
	case "json":
		return writeLintedJSON(out, all)
	case "github":
		return writeAnnotations(out, all)
	}
	for _, l := range all {
		if err := shown(l.found).WriteText(out); err != nil {
			return err
		}
	}
	return nil
}

// shown are findings as a person reads them: what is only a warning says so, and
// each names its check.
func shown(found playbook.Findings) diag.List {
	list := make(diag.List, len(found))
	for i, f := range found {
		list[i] = f.Diagnostic
		list[i].Message = fmt.Sprintf("%s [%s]", f.Message, f.Check)
		if f.Severity == playbook.Warning {
			list[i].Message = "warning: " + list[i].Message
		}
	}
	return list
}

type lintedJSON struct {
	File     string        `json:"file"`
	Findings []findingJSON `json:"findings"`
}

type findingJSON struct {
	Check    string            `json:"check"`
	Severity playbook.Severity `json:"severity"`
	File     string            `json:"file"`
	Line     int               `json:"line"`
	Col      int               `json:"col"`
	Width    int               `json:"width"`
	Message  string            `json:"message"`
	Hint     string            `json:"hint,omitempty"`
}

func writeLintedJSON(out io.Writer, all []linted) error {
	var result struct {
		Files    []lintedJSON `json:"files"`
		Errors   int          `json:"errors"`
		Warnings int          `json:"warnings"`
	}
	for _, l := range all {
		file := lintedJSON{l.file, make([]findingJSON, len(l.found))}
		for i, f := range l.found {
			file.Findings[i] = findingJSON{f.Check, f.Severity, f.File, f.Line, f.Col, max(1, f.Width), f.Message, f.Hint}
		}
		bad := len(l.found.Errors())
		result.Errors, result.Warnings = result.Errors+bad, result.Warnings+len(l.found)-bad
		result.Files = append(result.Files, file)
	}
	return newEncoder(out).Encode(result)
}

// writeAnnotations writes workflow commands of GitHub Actions: a line each, in
// which what would end a line or a property is escaped.
func writeAnnotations(out io.Writer, all []linted) error {
	var b bytes.Buffer
	text := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, l := range all {
		for _, f := range l.found {
			message := diag.Line(f.Message)
			if f.Hint != "" {
				message += "\n" + diag.Line(f.Hint)
			}
			fmt.Fprintf(&b, "::%s file=%s,line=%d,col=%d,endColumn=%d,title=%s::%s\n", f.Severity,
				property.Replace(filepath.ToSlash(f.File)), f.Line, f.Col, f.Col+max(1, f.Width), property.Replace(f.Check), text.Replace(message))
		}
	}
	_, err := out.Write(b.Bytes())
	return err
}
