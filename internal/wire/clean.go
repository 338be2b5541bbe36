package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// Clean remembers the parts of requests in which one chain found nothing at all:
// a conversation is sent again with each of its turns, and need not be judged
// again. It holds digests, and of those a bounded number. It is safe for use by
// several goroutines.
//
// A part is a message, a tool, or any other long text, together with its place:
// what a guard is told of a text is its channel, too. The chain must be constant,
// and is for the caller to keep apart from others.
type Clean struct {
	mu          sync.Mutex
	now, before map[[sha256.Size]byte]struct{}
}

// maxClean is how many parts are remembered before the older half is forgotten,
// at about 40 bytes each.
const maxClean = 1 << 15

func (c *Clean) has(d [sha256.Size]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.now[d]; ok {
		return true
	}
	_, ok := c.before[d]
	if ok {
		c.keep(d) // what is asked for again is not old
	}
	return ok
}

func (c *Clean) add(d [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(d)
}

func (c *Clean) keep(d [sha256.Size]byte) {
	if len(c.now) >= maxClean/2 {
		c.now, c.before = nil, c.now
	}
	if c.now == nil {
		c.now = map[[sha256.Size]byte]struct{}{}
	}
	c.now[d] = struct{}{}
}

// longPart is how long a text is that is a part by itself: shorter ones cost
// little to judge.
const longPart = 1 << 10

// isPart reports whether a leaf begins a part.
func isPart(l *leaf) bool {
	if l.token == '{' {
		return l.kind == Inner && l.node.channel == "message"
	}
	return l.token == '"' && l.kind == Text && l.to-l.from >= longPart
}

// cleaning is a part that is being judged.
type cleaning struct {
	clean  *Clean
	digest [sha256.Size]byte
	to     int
	splice int // how many there were before it
	found  int
}

// part begins a part; nil if it is known to be clean.
func (c *Clean) part(b *document, l *leaf) *cleaning {
	h := sha256.New()
	place := append([]byte(l.node.path), 0)
	for _, i := range l.idx {
		place = binary.BigEndian.AppendUint32(place, uint32(i))
	}
	h.Write(place)
	h.Write(b.doc[l.from:l.to])
	p := &cleaning{clean: c, to: l.to, splice: len(b.splices), found: b.found}
	if h.Sum(p.digest[:0]); c.has(p.digest) {
		return nil
	}
	return p
}

// learn notes that a part was judged, if nothing came of it.
func (p *cleaning) learn(b *document) {
	if b.found == p.found && len(b.splices) == p.splice && b.outcome.stop == nil {
		p.clean.add(p.digest)
	}
}
