// Package seal encrypts what must not lie about in the clear: the payloads of the
// journal, answers that wait for a person, the values behind placeholders.
//
//	key file ──► Ring: key, key, … the newest seals
//	                 │
//	Seal(column, plaintext) ──► id of the key, and nonce ‖ ciphertext ‖ tag
//	Open(column, id, sealed) ──► plaintext, or an error that says nothing of it
//
// # Laws
//
// Bound to its place: what was sealed for a [Column] opens for that column and no
// other. Moved to another row, run, tenant or table it is [ErrAltered], and so is
// one that somebody changed.
//
// A nonce is never used twice. Each is 24 random bytes: the first half makes a key
// for this one sealing out of the ring's (XAES-256-GCM, c2sp.org/XAES-256-GCM), so
// that a key is good for 2^80 sealings, where AES-GCM alone ends at 2^32. Nobody
// has to count.
//
// Rotation is a line: a key that is added at the end of a file seals from then on,
// and those before it open what they have sealed. A key's id is derived from the
// key, so that no two files can mean different keys by one id.
//
// Keys do not show: not in an error, not in a log, not as %v of anything here.
package seal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Column is a place that holds something sealed: a member of a row. It is what a
// sealed value is bound to, and it does not change while the value stands there.
type Column struct {
	Tenant string
	Name   string // of table and column: events.payload
	Run    string // may be empty
	Row    string // what tells the row from the others of its run
}

// bytes is the column as additional data: each member with its length before it.
func (c Column) bytes(id string) []byte {
	out := []byte("stoplog.seal.v1")
	for _, s := range []string{id, c.Tenant, c.Name, c.Run, c.Row} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(s)))
		out = append(out, s...)
	}
	return out
}

var (
	// ErrNoKey: nothing can be sealed, for there is no key.
	ErrNoKey = errors.New("there is no key to seal with: make one with `stoplog seal-key --to stoplog.seal` and name it in stoplog.yaml, seal: {key: file:stoplog.seal}")
	// ErrUnknownKey: it was sealed under a key that is not in the ring.
	ErrUnknownKey = errors.New("it is sealed under a key that is not here")
	// ErrAltered: it is not what was sealed for this place.
	ErrAltered = errors.New("it was altered, or moved from another place")
)

// Ring is a set of keys, of which the newest seals and all open. The nil Ring has
// none: it seals nothing and opens nothing. It is safe for use by several
// goroutines.
type Ring struct{ keys []*key } // the newest last

// ID is the id of the key that seals; empty if there is none.
func (r *Ring) ID() string {
	if r == nil {
		return ""
	}
	return r.keys[len(r.keys)-1].id
}

// IDs are the ids of all keys, the newest last.
func (r *Ring) IDs() []string {
	if r == nil {
		return nil
	}
	var ids []string
	for _, k := range r.keys {
		ids = append(ids, k.id)
	}
	return ids
}

// String names the keys by their ids.
func (r *Ring) String() string { return fmt.Sprintf("seal.Ring%v", r.IDs()) }

// GoString is String: %#v does not show keys either.
func (r *Ring) GoString() string { return r.String() }

// Overhead is by how many bytes what is sealed is longer than what it holds.
const Overhead = nonceSize + tagSize

// Seal seals a plaintext for a column. It returns the id of the key, which is kept
// beside the sealed bytes. It fails with ErrNoKey.
func (r *Ring) Seal(c Column, plaintext []byte) (id string, sealed []byte, err error) {
	if r == nil {
		return "", nil, ErrNoKey
	}
	k := r.keys[len(r.keys)-1]
	sealed = make([]byte, nonceSize, nonceSize+len(plaintext)+tagSize)
	rand.Read(sealed) // never fails
	aead, err := k.derive(sealed[:nonceSize/2])
	if err != nil {
		return "", nil, fmt.Errorf("seal a %s: %w", c.Name, err)
	}
	return k.id, aead.Seal(sealed, sealed[nonceSize/2:nonceSize], plaintext, c.bytes(k.id)), nil
}

// Open opens what was sealed for a column under the key with an id. It fails with
// ErrUnknownKey or ErrAltered.
func (r *Ring) Open(c Column, id string, sealed []byte) ([]byte, error) {
	var k *key
	if r != nil {
		if i := slices.IndexFunc(r.keys, func(k *key) bool { return k.id == id }); i >= 0 {
			k = r.keys[i]
		}
	}
	if k == nil {
		return nil, fmt.Errorf("open a %s: %w (key %.40q)", c.Name, ErrUnknownKey, id)
	}
	if len(sealed) < Overhead {
		return nil, fmt.Errorf("open a %s: %w", c.Name, ErrAltered)
	}
	aead, err := k.derive(sealed[:nonceSize/2])
	if err != nil {
		return nil, fmt.Errorf("open a %s: %w", c.Name, err)
	}
	plaintext, err := aead.Open(nil, sealed[nonceSize/2:nonceSize], sealed[nonceSize:], c.bytes(id))
	if err != nil {
		return nil, fmt.Errorf("open a %s: %w", c.Name, ErrAltered)
	}
	return plaintext, nil
}
