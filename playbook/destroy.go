package playbook

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arg is one argument of a command as far as it is known before it runs.
type arg struct {
	text  string
	known bool // an expression, or what a shell would put there, is not
}

// destroys says what a command would destroy, spend or publish for good, in the
// form "`git push --force` rewrites what others have"; empty if nothing that is
// known here. It looks through wrappers (sudo, env, xargs, find -exec, ssh) and
// into the texts that shells are given. It is a second net: what it does not know
// it lets through, and the first net, effect, does not depend on it.
func destroys(argv []arg) string { return destroysWithin(argv, maxNesting) }

// Destroys says what a command would destroy, spend or publish for good, as the
// check "destructive" sees it; empty if it is nothing that is known. It is for who is
// about to run it, with every word known.
func Destroys(argv []string) string {
	all := make([]arg, len(argv))
	for i, text := range argv {
		all[i] = arg{text, true}
	}
	return destroys(all)
}

// maxNesting is how many wrappers are looked through.
const maxNesting = 12

func destroysWithin(argv []arg, depth int) string {
	if len(argv) == 0 || !argv[0].known {
		return ""
	}
	if depth == 0 {
		return "a command within so many others that nobody can tell what it does"
	}
	c := command{name: program(argv[0].text), args: argv[1:]}
	if inner, ok := unwrap(c); ok {
		for _, in := range inner {
			if why := destroysWithin(in, depth-1); why != "" {
				return why
			}
		}
	}
	for _, text := range c.shellTexts() {
		if why := shellDestroys(text.text, depth-1); why != "" {
			return why
		}
	}
	for _, d := range destroyers {
		if slices.Contains(d.programs, c.name) {
			if what := d.does(c); what != "" {
				return "`" + strings.TrimSpace(c.name+" "+what) + "` " + d.means
			}
		}
	}
	return ""
}

func program(text string) string { return strings.TrimSuffix(strings.ToLower(path.Base(text)), ".exe") }

// shellDestroys looks at each command of a shell's text. A text that cannot be
// read as a shell's is looked at word by word.
func shellDestroys(text string, depth int) (why string) {
	if depth <= 0 {
		return "a command within so many others that nobody can tell what it does"
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		var argv []arg
		for _, word := range strings.Fields(text) {
			argv = append(argv, arg{word, true})
		}
		return destroysWithin(argv, depth)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if why == "" {
				why = destroysWithin(wordsOf(n.Args), depth)
			}
		case *syntax.Redirect:
			if to := wordsOf([]*syntax.Word{n.Word}); why == "" && n.Word != nil && writes(n.Op) && device(to[0].text) {
				why = "`> " + to[0].text + "` overwrites a disk"
			}
		}
		return why == ""
	})
	return why
}

func writes(op syntax.RedirOperator) bool {
	return op == syntax.RdrOut || op == syntax.AppOut || op == syntax.RdrClob || op == syntax.RdrAll || op == syntax.AppAll
}

var disk = regexp.MustCompile(`^/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|dm-|mapper/|md)`)

func device(file string) bool { return disk.MatchString(path.Clean(file)) }

// wordsOf gives the words of a command of a shell's text. Part of a word that
// only the shell knows makes it unknown, and keeps what is literal in it.
func wordsOf(words []*syntax.Word) []arg {
	argv := make([]arg, 0, len(words))
	for _, w := range words {
		if w == nil {
			argv = append(argv, arg{})
			continue
		}
		a := arg{known: true}
		var add func([]syntax.WordPart)
		add = func(parts []syntax.WordPart) {
			for _, part := range parts {
				switch part := part.(type) {
				case *syntax.Lit:
					a.text += unbackslash(part.Value)
				case *syntax.SglQuoted:
					a.text += part.Value
				case *syntax.DblQuoted:
					add(part.Parts)
				default:
					a.known = false
				}
			}
		}
		add(w.Parts)
		argv = append(argv, a)
	}
	return argv
}

// unbackslash takes the backslashes out of a literal.
func unbackslash(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// command is a program with its arguments.
type command struct {
	name string // without its folder, in lower case
	args []arg
}

// has says whether one of the flags is there: -r also as part of -rf, --force
// also as --force=… .
func (c command) has(flags ...string) bool {
	for _, a := range c.args {
		if a.text == "--" {
			return false
		}
		for _, f := range flags {
			switch {
			case a.text == f, strings.HasPrefix(f, "--") && strings.HasPrefix(a.text, f+"="):
				return true
			case len(f) == 2 && f[0] == '-' && len(a.text) > 1 && a.text[0] == '-' && a.text[1] != '-' && strings.Contains(a.text[1:], f[1:]):
				return true
			}
		}
	}
	return false
}

// verbs are the arguments that are no flags, in lower case.
func (c command) verbs() (words []string) {
	for _, a := range c.args {
		if !strings.HasPrefix(a.text, "-") {
			words = append(words, strings.ToLower(a.text))
		}
	}
	return words
}

// says gives the first of the phrases whose words stand among the verbs, in
// order; other words may stand between them.
func (c command) says(phrases ...string) string {
	verbs := c.verbs()
	for _, phrase := range phrases {
		rest := strings.Fields(phrase)
		for _, v := range verbs {
			if len(rest) > 0 && v == rest[0] {
				rest = rest[1:]
			}
		}
		if len(rest) == 0 {
			return phrase
		}
	}
	return ""
}

// value gives what stands behind a flag, as the next argument, after = or, of a
// short one, in the same word.
func (c command) value(flags ...string) (values []arg) {
	for i, a := range c.args {
		for _, f := range flags {
			long := strings.HasPrefix(f, "--")
			switch {
			case a.text == f && i+1 < len(c.args):
				values = append(values, c.args[i+1])
			case long && strings.HasPrefix(a.text, f+"="):
				values = append(values, arg{a.text[len(f)+1:], a.known})
			case !long && len(f) == 2 && len(a.text) > 2 && strings.HasPrefix(a.text, f):
				values = append(values, arg{a.text[2:], a.known})
			}
		}
	}
	return values
}
