package playbook

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard/inline"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/prompt"
)

// secretRules are compiled when a file is first read.
var secretRules = sync.OnceValue(func() *match.Engine {
	selected, err := rules.Select("secrets", "credentials")
	if err != nil {
		panic(err) // they come with the product
	}
	engine, err := match.Compile(selected, match.Options{Name: "secrets", Evasions: match.Evasions})
	if err != nil {
		panic(err)
	}
	return engine
})

// secretFinder keeps what was found in files, so that no message repeats it.
type secretFinder struct {
	lines   map[string]map[int]bool // lines with a secret, by file
	texts   []string
	hideAll bool
}

// note remembers a secret and its lines.
func (s *secretFinder) note(file string, from, to int, text []byte) {
	if s.lines == nil {
		s.lines = map[string]map[int]bool{}
	}
	if s.lines[file] == nil {
		s.lines[file] = map[int]bool{}
	}
	for n := from; n <= to; n++ {
		s.lines[file][n] = true
	}
	s.texts = append(s.texts, string(text))
}

// clean takes secrets out of what is said: a line that has one is not shown, and
// a message that repeats one says so instead.
func (s *secretFinder) clean(found Findings) Findings {
	for i := range found {
		d := &found[i].Diagnostic
		if s.hideAll || s.lines[d.File][d.Line] {
			d.Source = ""
		}
		for _, part := range []*string{&d.Message, &d.Hint, &d.Source} {
			for _, text := range s.texts {
				if text != "" {
					*part = strings.ReplaceAll(*part, text, "[secret]")
				}
			}
		}
	}
	return found
}

var secretCheck = &CheckDoc{
	ID: "secret", Summary: "a secret in the file, or in a prompt", always: true,
	Explain: `A playbook is read by everybody who reads the repository, and sent to models. The rules that screen streams (packs secrets and credentials) are run over the file and its prompts; what they find is not shown. Replace the secret where it came from, and give the step a handle: a file that its scope may read, or a variable whose value comes from an input. What is no secret is allowed by a comment on its line, or alone on the line before: # stoplog:allow RULE WHY.`,
	run: func(l *linter) {
		l.secretsIn(l.File, l.data)
		told := map[*loaded]bool{}
		for _, q := range l.questions() {
			ref, err := prompt.ParseRef(q.ask.PromptRef.Value)
			if l.lib.options.Tree == nil || err != nil {
				continue
			}
			if found := l.lib.prompt(l.roots(), ref); !told[found] {
				told[found] = true
				l.secretsIn(found.file, found.data)
			}
		}
	},
}

// secretsIn reports the secrets in a file.
func (l *linter) secretsIn(file string, data []byte) {
	where := newPlaces(file, data)
	report, err := inline.Check(context.Background(), secretRules(), data)
	if err != nil {
		l.errorf(where.span(0, 0), "", "the file cannot be searched for secrets: %v", err)
		return
	}
	for _, c := range report.Comments {
		if c.Wrong != "" {
			l.warnf(where.line(c.Line, c.Col), "remove it, or put it on the line of what it is for", "a comment that allows a finding: %s", c.Wrong)
		}
	}
	found := notAllowed(report.Findings)
	told := int64(0)
	for i, f := range found {
		end := f.End
		if end < 0 || end > int64(len(data)) {
			end = int64(len(data))
		}
		from, to := where.span(f.Start, end), where.span(end, end)
		l.lib.secrets.note(file, from.Line, to.Line, data[f.Start:end])
		if i == mostSecrets {
			l.errorf(from, "", "%d more secrets", len(found)-i)
			l.lib.secrets.hideAll = true
			return
		}
		if f.Start < told {
			continue // another rule's word for the same secret
		}
		told = end
		l.errorf(from, "replace it where it came from, and read it from a file or an input", "a secret, by rule %s", f.Rule)
	}
}

// notAllowed leaves out what a comment allows, and other rules' words for it.
func notAllowed(all []inline.Finding) (found []inline.Finding) {
	var allowed []inline.Finding // in order of start
	for _, f := range all {
		if f.Allowed != nil {
			allowed = append(allowed, f)
		}
	}
	for _, f := range all {
		i, _ := slices.BinarySearchFunc(allowed, f.Start+1, func(a inline.Finding, at int64) int { return cmp.Compare(a.Start, at) })
		if f.Allowed == nil && !(i > 0 && f.End <= allowed[i-1].End) {
			found = append(found, f)
		}
	}
	return found
}

// mostSecrets is how many are reported, each with its place. A file with more
// has no line of it shown.
const mostSecrets = 50

// places turns offsets of a file into lines and columns.
type places struct {
	file   string
	data   []byte
	starts []int // of lines
}

func newPlaces(file string, data []byte) *places {
	p := &places{file: file, data: data, starts: []int{0}}
	for i, c := range data {
		if c == '\n' {
			p.starts = append(p.starts, i+1)
		}
	}
	return p
}

// line is a place on a line.
func (p *places) line(n, col int) Span {
	return Span{Pos: diag.Pos{File: p.file, Line: n, Col: col}, Width: 1}
}

// span is the place of bytes of the file, on the first line of them.
func (p *places) span(start, end int64) Span {
	n, exact := slices.BinarySearch(p.starts, int(start))
	if !exact {
		n--
	}
	begin := p.data[p.starts[n]:start]
	text, _, _ := bytes.Cut(p.data[start:end], []byte("\n"))
	return Span{
		Pos:   diag.Pos{File: p.file, Line: n + 1, Col: utf8.RuneCount(begin) + 1},
		Width: max(1, utf8.RuneCount(text)),
	}
}
