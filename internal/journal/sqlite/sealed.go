package sqlite

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/seal"
)

// plain is the key id of what is stored unsealed.
const plain = ""

// What the sealed columns are bound to.
func eventColumn(ref journal.Ref, seq uint64) seal.Column {
	return seal.Column{Tenant: ref.Tenant, Name: "events.payload", Run: string(ref.Run), Row: strconv.FormatUint(seq, 10)}
}

// A large payload is several runs' own, and stands under its digest.
func blobColumn(tenant string, digest []byte) seal.Column {
	return seal.Column{Tenant: tenant, Name: "blobs.body", Row: hex.EncodeToString(digest)}
}

func snapshotColumn(ref journal.Ref, seq uint64) seal.Column {
	return seal.Column{Tenant: ref.Tenant, Name: "snapshots.state", Run: string(ref.Run), Row: strconv.FormatUint(seq, 10)}
}

func shownColumn(ref journal.Ref, id journal.ID) seal.Column {
	return seal.Column{Tenant: ref.Tenant, Name: "questions.shown", Run: string(ref.Run), Row: string(id)}
}

func saidColumn(ref journal.Ref, id journal.ID) seal.Column {
	return seal.Column{Tenant: ref.Tenant, Name: "questions.said", Run: string(ref.Run), Row: string(id)}
}

// seal returns what is stored of a value, and under which key: as it is, and none,
// where there is nothing to seal or nothing to seal with.
func (r reader) seal(c seal.Column, value []byte) (key string, stored []byte, err error) {
	if value == nil || r.ring == nil {
		return plain, value, nil
	}
	return r.ring.Seal(c, value)
}

// sealText is seal for a column of text.
func (r reader) sealText(c seal.Column, value string) (key, stored string, err error) {
	if value == "" || r.ring == nil {
		return plain, value, nil
	}
	key, sealed, err := r.ring.Seal(c, []byte(value))
	return key, base64.StdEncoding.EncodeToString(sealed), err
}

// open returns what seal was given. It fails with journal.ErrSealed or
// journal.ErrAltered.
func (r reader) open(c seal.Column, key string, stored []byte) ([]byte, error) {
	if key == plain || stored == nil {
		return stored, nil
	}
	value, err := r.ring.Open(c, key, stored)
	switch {
	case errors.Is(err, seal.ErrUnknownKey):
		return nil, fmt.Errorf("%w (key %.40q)", journal.ErrSealed, key)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", journal.ErrAltered, err)
	}
	return value, nil
}

// openEvent opens an event's payload. One that cannot be read is no error: the
// event is there, and its link can be followed.
func (r reader) openEvent(e *eventRow) (err error) {
	column := eventColumn(e.Ref, e.Seq)
	if e.apart {
		column = blobColumn(e.Tenant, e.digest)
	}
	e.Payload, e.Unread = r.open(column, e.keyID, e.Payload)
	if e.Payload, err = unpack(e.Payload); err != nil && e.keyID == plain {
		return err
	}
	return nil
}

// openQuestion opens what a question's row holds of words.
func (r reader) openQuestion(q *questionRow) (err error) {
	if q.Shown, err = r.open(shownColumn(q.Ref, q.ID), q.key, q.Shown); err != nil {
		return fmt.Errorf("what approval %s shows: %w", q.ID, err)
	}
	if q.saidKey == plain {
		return nil
	}
	sealed, err := base64.StdEncoding.DecodeString(q.Text)
	if err != nil {
		return fmt.Errorf("what was said to approval %s: %w", q.ID, journal.ErrAltered)
	}
	said, err := r.open(saidColumn(q.Ref, q.ID), q.saidKey, sealed)
	if err != nil {
		return fmt.Errorf("what was said to approval %s: %w", q.ID, err)
	}
	q.Text = string(said)
	return nil
}
