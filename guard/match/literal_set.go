package match

import (
	"slices"
	"sort"
	"sync/atomic"
)

// headLength is how many bytes of a form stand in its head.
const headLength = 8

// A head is the beginning of forms, its first byte uppermost.
type head = uint64

// A dictionary is a set of forms. It does not change: a set with one more form
// shares all with it but the way to that form.
//
// Forms are filed by their heads, in order, in shards by the first byte and, there,
// in pages; behind a head is a tree of what follows it. A filter knows of most texts
// that they are no head, nor the beginning of one.
type dictionary struct {
	forms  int
	shards [256]shard
	filter *filter
}

// A shard is pages in order, none of them empty.
type shard []*page

type page struct {
	heads []head
	nodes []*branch // of each head
}

// pageHeads is how many heads a page has at most.
const pageHeads = 64

// A branch is a place in the tree: text that goes on from the place before, forms
// that end behind it, and branches by their next byte.
type branch struct {
	text  string
	ends  []*entry // by number
	nexts []*branch
}

func newDictionary(forms int) *dictionary {
	return &dictionary{filter: newFilter(forms)}
}

// with is the set with forms added, which are not there for this entry yet.
func (d *dictionary) with(forms []string, e *entry) *dictionary {
	next := *d
	for _, f := range forms {
		next.change(f, func(b *branch) *branch { return b.with(f[headLength:], e) })
	}
	if next.forms += len(forms); next.forms > next.filter.most {
		next.filter = newFilter(2 * next.forms)
		for _, s := range next.shards {
			for _, p := range s {
				for _, h := range p.heads {
					next.filter.add(h)
				}
			}
		}
		return &next
	}
	for _, f := range forms {
		next.filter.add(headOf(f))
	}
	return &next
}

// without is the set without forms that are there for this entry.
func (d *dictionary) without(forms []string, e *entry) *dictionary {
	next := *d
	for _, f := range forms {
		next.change(f, func(b *branch) *branch { return b.without(f[headLength:], e) })
	}
	if next.forms -= len(forms); next.forms == 0 {
		return newDictionary(0)
	}
	return &next
}

// change replaces what is behind a form's head; nil is nothing.
func (d *dictionary) change(form string, by func(*branch) *branch) {
	h := headOf(form)
	s := slices.Clone(d.shards[form[0]])
	k := s.page(h)
	if len(s) == 0 {
		s = shard{&page{}}
	}
	p := &page{slices.Clone(s[k].heads), slices.Clone(s[k].nodes)}
	i, ok := slices.BinarySearch(p.heads, h)
	if !ok {
		p.heads, p.nodes = slices.Insert(p.heads, i, h), slices.Insert(p.nodes, i, &branch{})
	}
	if p.nodes[i] = by(p.nodes[i]); p.nodes[i] == nil {
		p.heads, p.nodes = slices.Delete(p.heads, i, i+1), slices.Delete(p.nodes, i, i+1)
	}
	s[k] = p
	switch half := len(p.heads) / 2; {
	case len(p.heads) == 0:
		s = slices.Delete(s, k, k+1)
	case len(p.heads) > pageHeads:
		s[k] = &page{p.heads[:half:half], p.nodes[:half:half]}
		s = slices.Insert(s, k+1, &page{p.heads[half:], p.nodes[half:]})
	}
	d.shards[form[0]] = s
}

// page is the number of the page in which a head is, if it is in one.
func (s shard) page(h head) int {
	i := sort.Search(len(s), func(i int) bool { return s[i].heads[0] > h })
	return max(0, i-1)
}

func headOf(form string) (h head) {
	for i := range headLength {
		h = h<<8 | head(form[i])
	}
	return h
}

// behind is what follows a head, nil if it is none.
func (d *dictionary) behind(h head) *branch {
	s := d.shards[h>>56]
	if len(s) == 0 {
		return nil
	}
	p := s[s.page(h)]
	if i, ok := slices.BinarySearch(p.heads, h); ok {
		return p.nodes[i]
	}
	return nil
}

// begins says whether n bytes, the last of text, are the beginning of a head.
func (d *dictionary) begins(text head, n int) bool {
	unused := 8 * (headLength - n)
	from := text << unused
	s := d.shards[from>>56]
	if len(s) == 0 || !d.filter.may(from, n) {
		return false
	}
	k := s.page(from)
	i, _ := slices.BinarySearch(s[k].heads, from)
	if i == len(s[k].heads) {
		if k, i = k+1, 0; k == len(s) {
			return false
		}
	}
	return s[k].heads[i]>>unused == from>>unused
}

// with is the branch with text that ends for e.
func (b *branch) with(text string, e *entry) *branch {
	if len(b.ends) == 0 && len(b.nexts) == 0 { // there is nothing yet
		return &branch{text: text, ends: []*entry{e}}
	}
	n := common(b.text, text)
	if n < len(b.text) { // it forks in its text
		b = &branch{text: text[:n], nexts: []*branch{{b.text[n:], b.ends, b.nexts}}}
	}
	next := &branch{b.text, b.ends, b.nexts}
	if text = text[n:]; text == "" {
		i, _ := slices.BinarySearchFunc(b.ends, e, byNumber)
		next.ends = slices.Insert(slices.Clone(b.ends), i, e)
		return next
	}
	next.nexts = slices.Clone(b.nexts)
	i, ok := slices.BinarySearchFunc(next.nexts, text[0], byFirst)
	if ok {
		next.nexts[i] = next.nexts[i].with(text, e)
	} else {
		next.nexts = slices.Insert(next.nexts, i, &branch{text: text, ends: []*entry{e}})
	}
	return next
}

// without is the branch without a text that ends for e, nil if nothing remains.
func (b *branch) without(text string, e *entry) *branch {
	next := &branch{b.text, b.ends, slices.Clone(b.nexts)}
	if text = text[len(b.text):]; text == "" {
		next.ends = slices.DeleteFunc(slices.Clone(b.ends), func(o *entry) bool { return o == e })
	} else {
		i, _ := slices.BinarySearchFunc(next.nexts, text[0], byFirst)
		if next.nexts[i] = next.nexts[i].without(text, e); next.nexts[i] == nil {
			next.nexts = slices.Delete(next.nexts, i, i+1)
		}
	}
	switch {
	case len(next.ends) > 0 || len(next.nexts) > 1:
		return next
	case len(next.nexts) == 0:
		return nil
	}
	only := next.nexts[0] // joined with what follows
	return &branch{b.text + only.text, only.ends, only.nexts}
}

func byNumber(a, b *entry) int { return a.number - b.number }

func byFirst(b *branch, first byte) int { return int(b.text[0]) - int(first) }

// common is how many bytes two texts begin with alike.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// A filter knows of texts that they are no head and no beginning of one; of some
// it does not know. What was added stays when it is removed from the set: then
// there is a little more to look up.
type filter struct {
	words []uint64 // atomic
	shift int
	most  int // forms, until it says too little
}

// newFilter has room for some number of forms.
func newFilter(forms int) *filter {
	f := &filter{shift: 64 - 7, most: 64}
	for f.most < forms {
		f.most *= 2
		f.shift--
	}
	f.words = make([]uint64, 2*f.most)
	return f
}

// place is where the filter keeps n bytes of text, which are its uppermost.
func (f *filter) place(text head, n int) (word int, bits uint64) {
	x := (text ^ text>>29 + uint64(n)*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return int(x >> f.shift), 1<<(x>>(f.shift-6)&63) | 1<<(x>>(f.shift-12)&63)
}

func (f *filter) may(text head, n int) bool {
	word, bits := f.place(text, n)
	return atomic.LoadUint64(&f.words[word])&bits == bits
}

// add adds a head and its beginnings.
func (f *filter) add(h head) {
	for n := 1; n <= headLength; n++ {
		word, bits := f.place(h>>(8*(headLength-n))<<(8*(headLength-n)), n)
		atomic.OrUint64(&f.words[word], bits)
	}
}
