package steps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Version is the version of the stored form that Marshal writes. Unmarshal reads it
// and every earlier one.
const Version = 1

// Marshal returns the stored form of an event: its kind, and a payload in JSON with
// the version in member "v". Text that is not valid UTF-8 is replaced where it is
// not: hosts see to it before.
func Marshal(e Event) (kind string, payload []byte, err error) {
	b, err := json.Marshal(e)
	if err != nil {
		return "", nil, fmt.Errorf("event %s: %w", e.Kind(), err)
	}
	out := fmt.Appendf(nil, `{"v":%d`, Version)
	if len(b) > len(`{}`) {
		out = append(out, ',')
	}
	return e.Kind(), append(out, b[1:]...), nil
}

// Unmarshal returns the event of a stored form, and of the time in its record.
func Unmarshal(kind string, at time.Time, payload []byte) (Event, error) {
	read, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("event %q: unknown kind", kind)
	}
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(payload, &head); err != nil {
		return nil, fmt.Errorf("event %s: %w", kind, err)
	}
	if head.V < 1 || head.V > Version {
		return nil, fmt.Errorf("event %s: stored form %d is not known here, which reads up to %d: a newer stoplog wrote it", kind, head.V, Version)
	}
	e, err := read(payload, at)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", kind, err)
	}
	return e, nil
}

// IsEvent reports whether a kind is one of a playbook's events.
func IsEvent(kind string) bool { return kinds[kind] != nil }

// kinds read the stored form of every kind of event.
var kinds = map[string]func([]byte, time.Time) (Event, error){
	Created{}.Kind():       reader[Created](),
	Claimed{}.Kind():       reader[Claimed](),
	Weighed{}.Kind():       reader[Weighed](),
	StepStarted{}.Kind():   reader[StepStarted](),
	StepWaits{}.Kind():     reader[StepWaits](),
	StepEnded{}.Kind():     reader[StepEnded](),
	Observed{}.Kind():      reader[Observed](),
	StepEvaluated{}.Kind(): reader[StepEvaluated](),
	Asked{}.Kind():         reader[Asked](),
	Decided{}.Kind():       reader[Decided](),
	Expired{}.Kind():       reader[Expired](),
	Resolved{}.Kind():      reader[Resolved](),
	Filed{}.Kind():         reader[Filed](),
	RunCancelled{}.Kind():  reader[RunCancelled](),
	InternalError{}.Kind(): reader[InternalError](),
	Ended{}.Kind():         reader[Ended](),
}

func reader[E Event, P interface {
	*E
	set(time.Time)
}]() func([]byte, time.Time) (Event, error) {
	return func(b []byte, at time.Time) (Event, error) {
		var e E
		if err := decode(b, &e); err != nil {
			return nil, err
		}
		P(&e).set(at)
		return e, nil
	}
}

// decode reads a stored form whose members are all known: a version says what it
// has, so one more is a mistake or a forgery.
func decode(b []byte, into any) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return err
	}
	delete(members, "v")
	rest, err := json.Marshal(members)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(rest))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
