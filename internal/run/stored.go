package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Version is the version of the stored form that Marshal and MarshalState write.
// They read it and every earlier one.
const Version = 1

// Marshal returns the stored form of an event: its kind, and a payload in JSON
// with members sorted and the version in member "v". The event's time is no part
// of the payload: records have a place of their own for it. Text that is not
// valid UTF-8 could not be read back as it was, and is an error.
func Marshal(e Event) (kind string, payload []byte, err error) {
	kind = e.Kind()
	c, ok := codecs[kind]
	if !ok {
		return "", nil, fmt.Errorf("event %s: no stored form", kind)
	}
	payload, err = encode(c.stored(e), func(b []byte) (any, error) {
		again, err := c.event(b, e.stamp())
		if err != nil {
			return nil, err
		}
		return c.stored(again), nil
	})
	if err != nil {
		return "", nil, fmt.Errorf("event %s: %w", kind, err)
	}
	return kind, payload, nil
}

// Unmarshal returns the event of a stored form, and of the time in its record.
func Unmarshal(kind string, at time.Time, payload []byte) (Event, error) {
	c, ok := codecs[kind]
	if !ok {
		return nil, fmt.Errorf("event %q: unknown kind", kind)
	}
	if err := checkVersion(payload); err != nil {
		return nil, fmt.Errorf("event %s: %w", kind, err)
	}
	e, err := c.event(payload, At(at))
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", kind, err)
	}
	return e, nil
}

// MarshalState returns the stored form of a state, for a snapshot.
func MarshalState(s State) ([]byte, error) {
	b, err := encode(storeState(s), func(b []byte) (any, error) {
		again, err := UnmarshalState(b)
		return storeState(again), err
	})
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return b, nil
}

// UnmarshalState returns the state of a snapshot.
func UnmarshalState(b []byte) (State, error) {
	if err := checkVersion(b); err != nil {
		return State{}, fmt.Errorf("state: %w", err)
	}
	var stored storedState
	if err := decode(b, &stored); err != nil {
		return State{}, fmt.Errorf("state: %w", err)
	}
	return stored.state(), nil
}

// A VersionError says that something was written by a newer program.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("stored form %d is not known here, which reads up to %d: a newer stoplog wrote it", e.Version, Version)
}

func checkVersion(b []byte) error {
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.V > Version {
		return &VersionError{head.V}
	}
	if head.V < 1 {
		return fmt.Errorf("no version in %.40q", b)
	}
	return nil
}

// version is the member "v" of everything stored.
type version struct{}

func (version) MarshalJSON() ([]byte, error) { return fmt.Append(nil, Version), nil }
func (*version) UnmarshalJSON([]byte) error  { return nil } // checkVersion has read it

// encode writes a stored form. The encoder turns bytes that are no UTF-8 into an
// escaped U+FFFD; a real one is written as it is. So where that escape is in the
// output, the form is read back by reread and must come out the same.
func encode(stored any, reread func([]byte) (any, error)) ([]byte, error) {
	b, err := encodeJSON(stored)
	if err != nil || !bytes.Contains(b, []byte(`\ufffd`)) {
		return b, err
	}
	again, err := reread(b)
	if err != nil {
		return nil, err
	}
	if b2, err := encodeJSON(again); err != nil || !bytes.Equal(b, b2) {
		return nil, fmt.Errorf("text is not valid UTF-8")
	}
	return b, nil
}

func encodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// decode reads a stored form whose members are all known: a version says what it
// has, so one more is a mistake or a forgery.
func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// A codec turns events of one kind into their stored form and back.
type codec struct {
	stored func(Event) any
	event  func([]byte, Stamp) (Event, error)
}

func codecOf[E Event, S any](stored func(E) S, event func(S, Stamp) E) codec {
	return codec{
		stored: func(e Event) any { return stored(e.(E)) },
		event: func(b []byte, at Stamp) (Event, error) {
			var s S
			if err := decode(b, &s); err != nil {
				return nil, err
			}
			return event(s, at), nil
		},
	}
}
