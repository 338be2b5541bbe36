package match

import "slices"

// Depths of fronts, in bytes: for rules that begin with a word, for those that
// begin with a run of a class, and for those whose run is long. Rules of one front
// multiply each other's states; so each kind has its own.
const (
	wordDepth = 10
	runDepth  = 24
	longDepth = 100
)

// wordFork is from how many bytes on a search in the front of words must not
// fork. mostThreads is how many threads a rule may have in any front.
const (
	wordFork    = 4
	mostThreads = 100
)

// depths has one for each front.
var depths = [fronts]int{wordDepth, runDepth, longDepth}

const fronts = 3

// newFronts shares the rules among fronts. One may have none.
func newFronts(rules []*rule, classes *classes, columns *columns, limit int64) (fs [fronts]*front) {
	byDepth := make(map[int][]*rule)
	for _, r := range rules {
		d := r.run()
		byDepth[d] = append(byDepth[d], r)
	}
	for i, depth := range depths {
		fs[i] = newFront(byDepth[depth], classes, columns, depth, limit)
	}
	return fs
}

// run says how deep the rule's front should be: how long a search goes on in
// which every rune is of the class that most runes lead on by.
func (r *rule) run() int {
	at := &state{prev: other, phase: found} // nothing starts behind the first
	threads := []thread{{r.prog.start, nowhere}}
	prev := seen(other, r.prog.looks)
	for n := range runDepth {
		letters := 0
		var best []thread
		var kind kind
		for c := 'a'; c <= 'z'; c++ {
			next := seen(word, r.prog.looks)
			at.threads, at.prev = threads, prev
			to, _, accept := r.build.step(at, c, next)
			if accept {
				return runDepth
			}
			if to = r.build.trim(to, next); len(to) > 0 {
				if letters == 0 {
					best, kind = slices.Clone(to), next
				}
				letters++
			}
		}
		if letters < 8 {
			if n > 2 {
				return runDepth
			}
			return wordDepth
		}
		threads, prev = forget(best), kind
	}
	return longDepth
}
