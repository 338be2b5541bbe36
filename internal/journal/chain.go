package journal

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"time"
)

// Key is the store's own key. It is made with the store and never leaves its
// side; whoever lacks it can neither make a payload that fits a digest nor guess
// a payload from one.
type Key [32]byte

// Digest is a keyed digest: HMAC-SHA-256 under the store's key.
type Digest [32]byte

// Link is an event's place in its run's chain.
type Link [32]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }
func (l Link) String() string   { return hex.EncodeToString(l[:]) }

// MarshalText writes the digest as 64 hex digits.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 hex digits.
func (d *Digest) UnmarshalText(text []byte) error { return unhex(d[:], string(text), "digest") }

// ParseLink reads what [Link.String] writes.
func ParseLink(s string) (l Link, err error) { return l, unhex(l[:], s, "link") }

func unhex(dst []byte, s, what string) error {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(dst) {
		return fmt.Errorf("%q is not a %s: want %d hex digits", s, what, 2*len(dst))
	}
	copy(dst, b)
	return nil
}

// Digest returns the keyed digest of a payload.
func (k Key) Digest(payload []byte) Digest {
	h := hmac.New(sha256.New, k[:])
	h.Write(payload)
	return Digest(h.Sum(nil))
}

// message returns the digest of the message list that is the list with digest
// list and message behind it. The empty list has the zero digest, so a list's
// digest says what is in it and not how it was put together.
func (k Key) message(list Digest, message []byte) Digest {
	h := hmac.New(sha256.New, k[:])
	h.Write([]byte("stoplog.message.v1"))
	h.Write(list[:])
	h.Write(message)
	return Digest(h.Sum(nil))
}

// Snapshot returns the keyed digest of a snapshot of a run, which nobody without
// the key can make for another state.
func (k Key) Snapshot(ref Ref, s Snapshot) Digest {
	h := hmac.New(sha256.New, k[:])
	h.Write([]byte("stoplog.snapshot.v1"))
	hashString(h, ref.Tenant)
	hashString(h, string(ref.Run))
	hashUint(h, s.Seq)
	hashUint(h, uint64(s.Version))
	h.Write(s.State)
	return Digest(h.Sum(nil))
}

// Fingerprints returns the key of the fingerprints of findings. It differs from
// the store's key so that a fingerprint is never the digest of a payload.
func (k Key) Fingerprints() []byte {
	sub, err := hkdf.Key(sha256.New, k[:], nil, "stoplog fingerprints", 32)
	if err != nil {
		panic(err) // 32 bytes are within what SHA-256 can give
	}
	return sub
}

// chainTag opens what a link is the hash of, so that it is the hash of nothing else.
const chainTag = "stoplog.v1"

// Link returns the link of the event, given the link before it (the zero Link
// before the first). It depends on the payload only through its digest.
//
//	SHA-256("stoplog.v1" ‖ prev ‖ tenant ‖ run ‖ seq ‖ at ‖ kind ‖ digest)
//
// seq, and at in Unix microseconds, are 8 bytes, big-endian; tenant, run and
// kind have their length before them in 4 bytes, big-endian.
func (r Record) chain(prev Link) Link {
	h := sha256.New()
	h.Write([]byte(chainTag))
	h.Write(prev[:])
	hashString(h, r.Tenant)
	hashString(h, string(r.Run))
	hashUint(h, r.Seq)
	hashUint(h, uint64(r.At.UnixMicro()))
	hashString(h, r.Kind)
	h.Write(r.Digest[:])
	return Link(h.Sum(nil))
}

func hashString(h hash.Hash, s string) {
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}

func hashUint(h hash.Hash, v uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	h.Write(b[:])
}

// Tail is the end of a run's chain: what the next event follows.
type Tail struct {
	Seq  uint64
	Link Link
}

// Next returns the record of an entry that is appended after the tail, now, and
// the tail behind it. A back end stores what it returns and adds nothing.
func (t Tail) Next(key Key, ref Ref, now time.Time, e Entry) (Record, Tail, error) {
	payload, version, err := e.Encode()
	if err != nil {
		return Record{}, t, err
	}
	at := e.At
	if at.IsZero() {
		at = now
	}
	r := Record{
		Ref:     ref,
		Seq:     t.Seq + 1,
		At:      at.UTC().Truncate(time.Microsecond),
		Kind:    e.Kind,
		Version: version,
		Content: e.Content,
		Payload: payload,
		Digest:  key.Digest(payload),
	}
	r.Link = r.chain(t.Link)
	return r, Tail{Seq: r.Seq, Link: r.Link}, nil
}
