package match

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"unsafe"
)

// print makes a fingerprint of text that comes in pieces: it names the text
// without giving it away. Without a key it is empty.
type print struct {
	hash.Hash
	done   int64 // the text before it was written
	digest []byte
	given  []byte // the digits of sums; what was given out is never written again
}

func newPrint(key []byte) print {
	if len(key) == 0 {
		return print{}
	}
	return print{Hash: hmac.New(sha256.New, key)}
}

// begin starts the fingerprint of the text from an offset on.
func (p *print) begin(from int64) {
	p.done = from
	if p.Hash != nil {
		p.Reset()
	}
}

// reach writes up to an offset of a text that starts at base.
func (p *print) reach(text []byte, base, to int64) {
	if p.Hash != nil {
		p.Write(text[p.done-base : to-base])
	}
	p.done = to
}

// sum is the fingerprint of what was written.
func (p *print) sum() string {
	if p.Hash == nil {
		return ""
	}
	p.digest = p.Sum(p.digest[:0])
	from := len(p.given)
	if cap(p.given)-from < digits {
		p.given, from = make([]byte, 0, min(max(digits, 2*cap(p.given)), 4096)), 0
	}
	p.given = hex.AppendEncode(p.given, p.digest[:digits/2])
	return unsafe.String(&p.given[from], digits)
}

// digits is the length of a fingerprint. Strings of that length share memory: a
// warm stream allocates none.
const digits = 16
