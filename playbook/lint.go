package playbook

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/prompt"
)

// Severity says whether a playbook runs in spite of a finding.
type Severity string

const (
	Error   Severity = "error"   // it does not run
	Warning Severity = "warning" // it runs
)

// A Finding is what a check has against a playbook.
type Finding struct {
	Check    string // its id; [Explain] says what it is about
	Severity Severity
	diag.Diagnostic
}

// Findings are those of one playbook: in its order, and behind them those in its
// prompts.
type Findings []Finding

// Errors gives the diagnostics that keep the playbook from running.
func (fs Findings) Errors() (list diag.List) {
	for _, f := range fs {
		if f.Severity == Error {
			list = append(list, f.Diagnostic)
		}
	}
	return list
}

// sort orders findings by file, the playbook's own first, line and column.
func (fs Findings) sort(own string) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		switch {
		case a.File == b.File:
			return cmp.Or(a.Line-b.Line, a.Col-b.Col)
		case a.File == own:
			return -1
		case b.File == own:
			return 1
		}
		return strings.Compare(a.File, b.File)
	})
}

// Options are what a playbook is checked against.
type Options struct {
	// Tree is the root of the project: prompts and other playbooks are in it. A
	// tree that follows no link out of itself is the caller's to give (os.Root).
	// Nil: what a playbook refers to is not looked up.
	Tree fs.FS
	// Path is the playbook's own in Tree; empty: it is the file's name.
	Path string
	// Known says of a pin whether the model is known: priced, and not retired.
	// Nil: all are.
	Known func(Pin) bool
}

// Lint reads data as the content of file, and runs every check. The playbook is
// as much of it as could be read; it is fit to run only if [Findings.Errors] is
// empty.
func Lint(file string, data []byte, o Options) (*Playbook, Findings) {
	at := o.Path
	if at == "" {
		at = path.Clean(file)
	}
	lib := &library{options: o, checks: Checks, books: map[string]*book{}, prompts: map[string]*loaded{}}
	if before, ok := strings.CutSuffix(filepath.ToSlash(file), at); ok {
		lib.prefix = before
	}
	b := lib.lint(file, at, data)
	return b.playbook, b.findings
}

// library is the files that one reading meets, each read once.
type library struct {
	options Options
	checks  []*CheckDoc
	prefix  string // what stands before a path of the tree in messages
	books   map[string]*book
	prompts map[string]*loaded
	secrets secretFinder
}

// book is a playbook that is being read, or was.
type book struct {
	playbook *Playbook
	findings Findings
	reading  bool
	sum      summary
}

// loaded is a prompt that was looked for.
type loaded struct {
	file   string // as it is named in messages
	data   []byte
	prompt *prompt.Prompt
	corpus string
	err    error
}

// mostBooks bounds how many playbooks one may lead to.
const mostBooks = 200

// called gives the playbook of a path of the tree, read and checked.
func (lib *library) called(at string) (*book, error) {
	if b, ok := lib.books[at]; ok {
		return b, nil
	}
	if len(lib.books) >= mostBooks {
		return nil, fmt.Errorf("more than %d playbooks call each other", mostBooks)
	}
	data, err := prompt.Read(lib.options.Tree, at, MaxBytes)
	if err != nil {
		return nil, err
	}
	return lib.lint(lib.prefix+at, at, data), nil
}

func (lib *library) lint(file, at string, data []byte) *book {
	b := &book{reading: true}
	lib.books[at] = b
	p, list := parse(file, data)
	b.playbook = p
	l := &linter{Playbook: p, book: b, lib: lib, path: at}
	for _, d := range list {
		l.found = append(l.found, Finding{Check: syntaxCheck.ID, Severity: Error, Diagnostic: d})
	}
	l.data = data
	if len(p.Steps) > 0 {
		l.graph = newGraph(p)
	}
	for _, c := range lib.checks {
		if c.run != nil && (l.graph != nil || c.always) {
			l.check = c
			c.run(l)
		}
	}
	b.sum = l.summarise()
	b.findings = lib.secrets.clean(l.found)
	b.findings.sort(file)
	b.reading = false
	return b
}

// prompt gives the prompt of a ref as a playbook of these roots sees it.
func (lib *library) prompt(roots []string, ref prompt.Ref) *loaded {
	key := strings.Join(roots, "\x00") + "\x00\x00" + ref.String()
	if l, ok := lib.prompts[key]; ok {
		return l
	}
	l := &loaded{}
	lib.prompts[key] = l
	var file string
	if file, l.corpus, l.err = prompt.Find(lib.options.Tree, roots, ref); l.err != nil {
		return l
	}
	data, err := prompt.Read(lib.options.Tree, file, prompt.MaxBytes)
	if err != nil {
		l.err = fmt.Errorf("read prompt %s: %w", ref, err)
		return l
	}
	l.file, l.data = lib.prefix+file, data
	l.prompt, l.err = prompt.Parse(l.file, data)
	return l
}

// linter is one playbook under the checks.
type linter struct {
	*Playbook
	book  *book
	lib   *library
	path  string // in the tree
	data  []byte
	graph *graph // nil if there are no steps
	check *CheckDoc
	found Findings

	// What several checks need is made once, when the first asks.
	guards *guards
	exprs  *language
	asked  []question
	looked bool // asked was made
}

// report adds a finding of the check that runs.
func (l *linter) report(s Severity, at Span, hint, format string, args ...any) {
	d := diag.Diagnostic{Span: at, Message: fmt.Sprintf(format, args...), Hint: hint}
	if at.File == l.File && 0 < at.Line && at.Line <= len(l.lines) {
		d.Source = l.lines[at.Line-1]
	}
	l.found = append(l.found, Finding{Check: l.check.ID, Severity: s, Diagnostic: d})
}

func (l *linter) errorf(at Span, hint, format string, args ...any) {
	l.report(Error, at, hint, format, args...)
}

func (l *linter) warnf(at Span, hint, format string, args ...any) {
	l.report(Warning, at, hint, format, args...)
}

// strict is the severity of what a draft may have and an active playbook may not.
func (l *linter) strict() Severity {
	if l.Status.Value == Active {
		return Error
	}
	return Warning
}

// roots are the folders in which the playbook's prompts are.
func (l *linter) roots() []string {
	if !l.PromptRoots.Written() {
		return prompt.Roots
	}
	roots := make([]string, 0, len(l.PromptRoots.Value))
	for _, r := range l.PromptRoots.Value {
		roots = append(roots, path.Clean(r.Value))
	}
	return roots
}

// question is a place where a model is asked: a step, or its observer.
type question struct {
	step     *Step
	observer *Observer // nil: the step itself
	ask      *Ask
	scope    *Scope
	output   *Schema
	at       Span // of the step's id, or of the observer
	flawed   bool
	what     string // in messages
}

// questions gives all of them.
func (l *linter) questions() []question {
	if !l.looked {
		l.asked, l.looked = questionsOf(l.Steps), true
	}
	return l.asked
}

func questionsOf(steps []*Step) (all []question) {
	for _, s := range steps {
		q := question{step: s, scope: s.Scope, at: s.at(), flawed: s.flawed}
		switch w := s.Work.(type) {
		case *Claude:
			q.ask, q.output = &w.Ask, w.Output
		case *Agent:
			q.ask, q.output = &w.Ask, w.Output
		}
		if q.ask != nil {
			q.what = fmt.Sprintf("step %q", s.ID.Value)
			all = append(all, q)
		}
		if o := s.Observer; o != nil {
			all = append(all, question{
				step: s, observer: o, ask: &o.Ask, scope: o.Scope, at: o.Span, flawed: o.flawed,
				what: fmt.Sprintf("the observer of step %q", s.ID.Value),
			})
		}
	}
	return all
}

// prompt gives a question's prompt; nil if there is none, or it cannot be read.
func (l *linter) promptOf(q question) *prompt.Prompt {
	if l.lib.options.Tree == nil || !q.ask.PromptRef.Written() {
		return nil
	}
	ref, err := prompt.ParseRef(q.ask.PromptRef.Value)
	if err != nil {
		return nil
	}
	return l.lib.prompt(l.roots(), ref).prompt
}

// at is where a step is named.
func (s *Step) at() Span {
	if s.ID.Written() {
		return s.ID.Span
	}
	return s.Span
}

// missing says of an error that a file is not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
