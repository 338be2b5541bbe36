package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// An Entry is an event that is to be appended. The journal gives it its number,
// its time and its link.
type Entry struct {
	// Kind says what happened. Whoever appends it defines it; the journal's own
	// kinds are those of this package.
	Kind string
	// At is when it happened, as its owner counts time; zero: when it is appended,
	// by the store's clock.
	At time.Time
	// Content says how much of a person's or a model's text the payload holds,
	// and so how long it stays.
	Content Content
	// Payload is a JSON object, its members in any order. Member "v" is the
	// version of its form: payloads of one kind have had forms 1, 2, …
	Payload json.RawMessage
}

// NewEntry returns an entry with the object v (a struct or a map, without a
// member "v") as the payload of a version.
func NewEntry(kind string, version int, content Content, v any) (Entry, error) {
	p, err := json.Marshal(v)
	if err != nil {
		return Entry{}, fmt.Errorf("encode an event %s: %w", kind, err)
	}
	if len(p) < 2 || p[0] != '{' {
		return Entry{}, fmt.Errorf("encode an event %s: a %T is not a JSON object", kind, v)
	}
	out := fmt.Appendf(nil, `{"v":%d`, version)
	if len(p) > len(`{}`) {
		out = append(out, ',')
	}
	return Entry{Kind: kind, Content: content, Payload: append(out, p[1:]...)}, nil
}

// Encode returns the payload's stored form, whose keyed digest the chain covers,
// and its version. The form has members sorted, no white space, and numbers as
// they were written, so equal payloads have equal forms. What is not one JSON
// object with distinct members, a version, and valid UTF-8 is refused.
func (e Entry) Encode() (form []byte, version int, err error) {
	form, err = canonical(e.Payload)
	if err == nil {
		version, err = versionOf(form)
	}
	if err == nil && e.Kind == "" {
		err = errors.New("it has no kind")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("encode an event %s: %w", e.Kind, err)
	}
	return form, version, nil
}

// canonical returns the form of a JSON value in which equal values have equal
// bytes: members sorted, no white space, strings in their shortest spelling.
// Numbers stay as they were written.
func canonical(src json.RawMessage) ([]byte, error) {
	out := jsontext.Value(bytes.Clone(src))
	err := out.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return out, err
}

// versionOf returns the member "v" of a payload.
func versionOf(form []byte) (int, error) {
	var head struct {
		V int `json:"v"`
	}
	if form[0] != '{' {
		return 0, errors.New("the payload is not a JSON object")
	}
	if err := json.Unmarshal(form, &head); err != nil {
		return 0, err
	}
	if head.V < 1 {
		return 0, errors.New(`the payload has no version in member "v"`)
	}
	return head.V, nil
}

// Record is an event as the log holds it.
type Record struct {
	Ref
	Seq     uint64
	At      time.Time // UTC, to the microsecond
	Kind    string
	Version int // the payload's member "v"
	Content Content
	// Payload is what [Entry.Encode] gave; nil if the payload was purged, and if
	// Unread says why it could not be read: ErrSealed or ErrAltered.
	Payload json.RawMessage
	Unread  error
	Purged  time.Time // when the payload was purged; zero if it is there
	Digest  Digest    // keyed digest of the payload, kept when that is purged
	Link    Link
}

// Decode reads the payload into v. It fails if the payload was purged.
func (r Record) Decode(v any) error {
	if !r.Purged.IsZero() {
		return fmt.Errorf("event %d of %s (%s): %w at %s", r.Seq, r.Ref, r.Kind, ErrPurged, r.Purged.Format(time.RFC3339))
	}
	if r.Unread != nil {
		return fmt.Errorf("event %d of %s (%s): %w", r.Seq, r.Ref, r.Kind, r.Unread)
	}
	if err := json.Unmarshal(r.Payload, v); err != nil {
		return fmt.Errorf("decode event %d of %s (%s, version %d): %w", r.Seq, r.Ref, r.Kind, r.Version, err)
	}
	return nil
}

// Content says what a payload holds of the words of people and models. Whoever
// appends an event knows; what remains after the run has ended follows from it
// (see [Capture]).
type Content uint8

const (
	// Structure is what happened and how much of it, without anybody's words.
	Structure Content = iota
	// Text is screened text.
	Text
	// Raw is text that was not screened.
	Raw
)
