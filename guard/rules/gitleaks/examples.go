package gitleaks

import (
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/guard/match"
)

// tries is how many texts are made before one is given up.
const tries = 400

// Examples returns texts in which a rule of [Rules] finds something, made from
// its pattern or what was written down for its mend, and texts made from those in
// which it finds nothing. They are the same each time, and are made when they are asked for: written down they would
// look like secrets to every scanner.
func Examples(r match.Rule) (yes, no []string) {
	re := regexp.MustCompile(r.Pattern)
	tree, err := syntax.Parse(r.Pattern, syntax.Perl)
	if err != nil {
		return nil, nil
	}
	seed := fnv.New64a()
	seed.Write([]byte(r.ID))
	w := writer{Rand: rand.New(rand.NewPCG(seed.Sum64(), 1))}
	finds := func(text string) bool {
		group := max(0, re.SubexpIndex(r.Group))
		return slices.ContainsFunc(re.FindAllStringSubmatchIndex(text, -1), func(m []int) bool {
			span := []byte(text[m[2*group]:m[2*group+1]])
			return !slices.ContainsFunc(r.Validators, func(v match.Validator) bool { return !v.Accept(span) })
		})
	}
	for _, m := range mends {
		if _, mine := m.patterns[r.ID]; mine {
			yes = slices.DeleteFunc(slices.Clone(m.finds), func(text string) bool { return !finds(text) })
			no = slices.Clone(m.spares)
		}
	}
	for range tries {
		if len(yes) >= 2 && len(no) >= 2 {
			break
		}
		w.Reset()
		w.write(tree)
		text := w.String()
		for _, hit := range []string{text, "key " + text + "\n"} {
			if len(yes) < 2 && !slices.Contains(yes, hit) && finds(hit) {
				yes = append(yes, hit)
				break
			}
		}
		// Cut short, or broken by a space somewhere in its middle.
		for _, near := range []string{text[:len(text)/2], text[:len(text)*2/3] + " " + text[len(text)*2/3:]} {
			if len(no) < 2 && len(near) > 0 && !slices.Contains(no, near) && !finds(near) {
				no = append(no, near)
			}
		}
	}
	return yes, no
}

// writer writes texts that match a pattern, but for its assertions.
type writer struct {
	*rand.Rand
	strings.Builder
}

func (w *writer) write(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		w.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		w.WriteRune(w.of(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.WriteByte("abc 123"[w.IntN(7)])
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			w.write(sub)
		}
	case syntax.OpAlternate:
		w.write(re.Sub[w.IntN(len(re.Sub))])
	case syntax.OpQuest:
		w.times(re, 0, 1)
	case syntax.OpStar:
		w.times(re, 0, 3)
	case syntax.OpPlus:
		w.times(re, 1, 12)
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 {
			most = re.Min + 12
		}
		w.times(re, re.Min, min(most, re.Min+12))
	}
}

func (w *writer) times(re *syntax.Regexp, least, most int) {
	if re.Flags&syntax.NonGreedy != 0 {
		most = least
	}
	for range least + w.IntN(most-least+1) {
		w.write(re.Sub[0])
	}
}

// of is a rune of a class, printable ASCII if the class has one.
func (w *writer) of(class []rune) rune {
	var runes []rune
	for i := 0; i < len(class); i += 2 {
		for r := max(class[i], ' '); r <= min(class[i+1], '~'); r++ {
			runes = append(runes, r)
		}
	}
	if len(runes) == 0 {
		return class[0]
	}
	return runes[w.IntN(len(runes))]
}
