// Package inline reads a text of ours, such as a playbook or a prompt, as a guard
// does, and takes the comments in it that let findings pass at their word:
//
//	token: q9Zr4Tn7Lw2Xk8Vb5Mc1  # stoplog:allow generic-api-key an example, of no account
//
//	<!-- stoplog:allow email the address that readers write to -->
//	Write to help@acme.example.com.
//
// A comment names one rule and says why. It is for what the rule finds that begins
// on its line, or, where it stands alone, on the next. It is for files that people
// review: in text that comes from elsewhere, what lets a finding pass would let
// whoever wrote the text pass.
//
// # Laws
//
// A finding is always reported; a comment says no more than that it is allowed.
// A comment without a rule or a reason, or for which there is no finding, is wrong
// and says so: what it once let pass is gone, or was never there.
package inline

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
)

// Comment is a comment that lets findings pass.
type Comment struct {
	Line, Col int // from 1; columns count runes
	Rule, Why string
	// Wrong says what is wrong with it; empty: nothing is.
	Wrong string
}

// Finding is a finding and where it stands in the file.
type Finding struct {
	guard.Finding
	Line, Col int      // of its start
	Allowed   *Comment // the one that lets it pass; nil if none does
}

// Report is what there is to say of a text.
type Report struct {
	Findings []Finding  // in order
	Comments []*Comment // in order
}

var (
	commentForm = regexp.MustCompile(`(?:#|//|<!--|;)[ \t]*stoplog:allow\b[ \t]*(.*?)[ \t]*(?:-->[ \t]*)?$`)
	ruleForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
)

// Check runs a guard over a text. It fails if the guard does.
func Check(ctx context.Context, g guard.Guard, text []byte) (Report, error) {
	lines := strings.Split(string(text), "\n")
	r := Report{Comments: comments(lines)}
	s := g.Open(ctx, guard.Channel{Name: "file", Kind: guard.Document})
	add := func(p guard.Progress) {
		for _, f := range p.Findings {
			if f.End != guard.Open {
				r.Findings = append(r.Findings, Finding{Finding: f})
			}
		}
	}
	p, err := s.Write(text)
	if add(p); err == nil {
		p, err = s.Close()
		add(p)
	}
	if err != nil {
		return Report{}, fmt.Errorf("guard %s: %w", g.Name(), err)
	}
	used, byLine := map[*Comment]bool{}, map[int][]*Comment{}
	for _, c := range r.Comments {
		byLine[c.Line] = append(byLine[c.Line], c)
	}
	starts := starts(lines)
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Line, f.Col = place(text, starts, f.Start)
		for _, c := range slices.Concat(byLine[f.Line], byLine[f.Line-1]) {
			if c.Wrong == "" && c.Rule == f.Rule && covers(lines, c, f.Line) {
				f.Allowed, used[c] = c, true
			}
		}
	}
	for _, c := range r.Comments {
		if c.Wrong == "" && !used[c] {
			c.Wrong = fmt.Sprintf("rule %s finds nothing here", c.Rule)
		}
	}
	return r, nil
}

// comments are those of a text that let findings pass, right or wrong.
func comments(lines []string) (all []*Comment) {
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		m := commentForm.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		c := &Comment{Line: i + 1, Col: utf8.RuneCountInString(line[:m[0]]) + 1}
		c.Rule, c.Why, _ = strings.Cut(line[m[2]:m[3]], " ")
		switch c.Why = strings.TrimSpace(c.Why); {
		case !ruleForm.MatchString(c.Rule):
			c.Rule, c.Why, c.Wrong = "", "", "it names no rule: write stoplog:allow RULE WHY"
		case c.Why == "":
			c.Wrong = "it does not say why: write stoplog:allow RULE WHY"
		}
		all = append(all, c)
	}
	return all
}

// covers reports whether a comment is for what begins on a line.
func covers(lines []string, c *Comment, line int) bool {
	own := lines[c.Line-1]
	alone := strings.TrimSpace(string([]rune(own)[:c.Col-1])) == ""
	return line == c.Line || alone && line == c.Line+1
}

// starts are the offsets at which lines begin.
func starts(lines []string) []int64 {
	all, at := make([]int64, len(lines)), int64(0)
	for i, line := range lines {
		all[i] = at
		at += int64(len(line)) + 1
	}
	return all
}

// place is where an offset of a text is.
func place(text []byte, starts []int64, at int64) (line, col int) {
	n, exact := slices.BinarySearch(starts, at)
	if exact {
		n++
	}
	return n, utf8.RuneCount(text[starts[n-1]:at]) + 1
}
