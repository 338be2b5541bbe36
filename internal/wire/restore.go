package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/guard"
)

// Placeholders are what an answer may hold in place of values that its request
// had. They are matched in any case, and replaced by the values; guards are shown
// a blank of the same length, since neither a placeholder nor what it stands for
// is theirs to judge: the caller has it already.
//
// A placeholder is a name between brackets, of ASCII letters, digits and _.
type Placeholders struct {
	names  []string // in lower case, sorted
	values map[string]string
}

// NewPlaceholders returns what stands for values, by placeholder; nil for none.
func NewPlaceholders(values map[string]string) *Placeholders {
	if len(values) == 0 {
		return nil
	}
	p := &Placeholders{values: map[string]string{}}
	for name, value := range values {
		name = strings.ToLower(name)
		p.names = append(p.names, name)
		p.values[name] = value
	}
	slices.Sort(p.names)
	return p
}

// maxPlaceholder is the longest placeholder.
const maxPlaceholder = 64

// at looks at a text that begins with a bracket: for the placeholder there, or
// whether it may become one. Nothing longer waits than what begins one.
func (p *Placeholders) at(b []byte) (name string, more bool) {
	var buf [maxPlaceholder]byte
	n := min(len(b), len(buf))
	for i := range n {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
		if c == ']' {
			name := string(buf[:i+1])
			if _, ok := p.values[name]; ok {
				return name, false
			}
			return "", false
		}
	}
	if n < len(b) {
		return "", false
	}
	start := string(buf[:n])
	i, _ := slices.BinarySearch(p.names, start)
	return "", i < len(p.names) && strings.HasPrefix(p.names[i], start)
}

// blank is a text with a blank in the place of each placeholder.
func (p *Placeholders) blank(text []byte) []byte {
	if p == nil || bytes.IndexByte(text, '[') < 0 {
		return text
	}
	r := restoring{known: p}
	return append(bytes.Clone(r.next(text)), r.last()...)
}

// restoring finds the placeholders of one channel, as its text comes.
type restoring struct {
	known   *Placeholders
	held    []byte    // what may become a placeholder
	out     []byte    // what the guards are shown; good until the next call
	passed  int64     // how much that was
	pending []restore // found, and not settled
	edited  int64     // where the last redaction ends
	// first are the first bytes of the text but space: they tell a document.
	first  [2]byte
	firsts int
}

// A restore puts a value in the place of [from, to).
type restore struct {
	from, to int64
	value    string
}

// next takes the next text and returns what the guards are shown of it now.
func (r *restoring) next(p []byte) []byte {
	r.out = r.out[:0]
	r.sniff(p)
	text := p
	if len(r.held) > 0 {
		text = append(r.held, p...)
	}
	for {
		i := bytes.IndexByte(text, '[')
		if i < 0 {
			r.pass(text)
			r.held = r.held[:0]
			return r.out
		}
		r.pass(text[:i])
		text = text[i:]
		name, more := r.known.at(text)
		switch {
		case more:
			r.held = append([]byte(nil), text...)
			return r.out
		case name == "":
			r.pass(text[:1])
			text = text[1:]
		default:
			r.pending = append(r.pending, restore{r.passed, r.passed + int64(len(name)), r.known.values[name]})
			for range name {
				r.out = append(r.out, ' ')
			}
			r.passed += int64(len(name))
			text = text[len(name):]
		}
	}
}

func (r *restoring) pass(text []byte) {
	r.out = append(r.out, text...)
	r.passed += int64(len(text))
}

// last is what the guards are shown at the end: what began a placeholder was none.
func (r *restoring) last() []byte {
	r.out = r.out[:0]
	r.pass(r.held)
	r.held = r.held[:0]
	return r.out
}

// before takes the pending ones that end at to or before, in order.
func (r *restoring) before(to int64) []restore {
	n := 0
	for n < len(r.pending) && r.pending[n].to <= to {
		n++
	}
	ready := r.pending[:n]
	r.pending = r.pending[n:]
	return ready
}

// redacted drops the pending ones that a redaction touches: it was found in what
// is around them, and goes over them.
func (r *restoring) redacted(to int64) {
	r.edited = max(r.edited, to)
	for len(r.pending) > 0 && r.pending[0].from < r.edited {
		r.pending = r.pending[1:]
	}
}

// settled caps what is settled at the first pending one, which leaves whole.
func (r *restoring) settled(to int64) int64 {
	if len(r.pending) > 0 {
		to = min(to, r.pending[0].from)
	}
	return to
}

// sniff notes how the text begins.
func (r *restoring) sniff(p []byte) {
	for i := 0; r.firsts < len(r.first) && i < len(p); i++ {
		if !isSpace(p[i]) {
			r.first[r.firsts] = p[i]
			r.firsts++
		}
	}
}

// isDocument reports whether the text begins as a JSON object or array does: an
// answer in a structured form. What is put into it is escaped, so that it stays one.
func (r *restoring) isDocument() bool {
	switch r.first[0] {
	case '{':
		return true
	case '[':
		return bytes.IndexByte([]byte(`{["`), r.first[1]) >= 0
	}
	return false
}

// restore puts values back, in the channel's order.
func (c *channel) restore(ready []restore) {
	for _, r := range ready {
		if r.from < c.resume || c.info.Kind == guard.Reasoning || c.proj != nil && !c.proj.single(r.from, r.to) {
			continue
		}
		value := r.value
		if c.proj == nil && c.back.isDocument() {
			value = string(escape(nil, value))
		}
		c.replace(guard.Edit{Start: r.from, End: r.to, Text: value})
	}
}
