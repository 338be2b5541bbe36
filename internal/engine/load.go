package engine

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/signal"
)

// told is what the model has been sent so far.
type told struct {
	List  journal.Digest `json:"list"`
	Parts int            `json:"parts"` // how many (see Model.Messages)
	Bytes int64          `json:"bytes"`
}

// replay is a run as its log tells of it.
type replay struct {
	state run.State
	told  told
	// pending is a list that a model call is about to go out with.
	pending told
	// ends is how much text the newest attempt has released, by channel.
	ends map[string]int64
}

// take takes in the next record.
func (p *replay) take(r journal.Record) (run.Event, error) {
	e, err := eventOf(r)
	if errors.Is(err, errNotAnEvent) {
		return nil, p.own(r)
	}
	if err != nil {
		return nil, err
	}
	if err := run.Check(p.state, e); err != nil {
		return nil, fmt.Errorf("event %d: %w", r.Seq, err)
	}
	p.state = run.Apply(p.state, e)
	if m, ok := e.(run.ModelStarted); ok {
		p.pending.Parts = m.Step
		p.told, p.ends = p.pending, nil
	}
	return e, nil
}

// own takes in a record of the journal's own kinds.
func (p *replay) own(r journal.Record) error {
	switch r.Kind {
	case journal.MessagesAdded:
		var m journal.Messages
		if err := r.Decode(&m); err != nil {
			return err
		}
		p.pending = p.told.with(m)
	case journal.TextReleased:
		var s journal.Released
		if err := r.Decode(&s); err != nil {
			return err
		}
		if p.ends == nil {
			p.ends = map[string]int64{}
		}
		p.ends[s.Channel] = s.Start + int64(len(s.Text))
	}
	return nil
}

// with is what the model has been told when it is sent more messages.
func (t told) with(m journal.Messages) told {
	t.List = m.List
	for _, message := range m.New {
		t.Bytes += int64(len(message))
	}
	return t
}

// load reads the run: the last snapshot, and what came behind it.
func (t *tenure) load() error {
	var p replay
	var at uint64 // where the snapshot was taken
	s, err := t.store.Snapshot(t.ctx, t.lease.Ref)
	switch {
	case err == nil:
		if p, err = unmarshalSnapshot(s); err != nil {
			return err
		}
		at = s.Seq
	case !errors.Is(err, journal.ErrNotFound):
		return err
	}
	if err := t.replay(&p, at); err != nil {
		return err
	}
	t.state, t.told, t.ends = p.state, p.told, p.ends
	t.durable = t.state.Events
	t.since = t.row
	return nil
}

// replay takes in what came behind the event at. What was altered, left out or
// put in is no ground to act on.
func (t *tenure) replay(p *replay, at uint64) error {
	var tail journal.Tail
	for r, err := range t.store.Events(t.ctx, t.lease.Ref, at-min(at, 1)) {
		if err != nil {
			return err
		}
		if r.Seq == at { // what the snapshot covers: the chain goes on from it
			tail = journal.Tail{Seq: r.Seq, Link: r.Link}
			continue
		}
		var broken *journal.Broken
		if tail, broken = tail.Follow(t.store.Key(), r); broken != nil {
			return fmt.Errorf("%w: %w", journal.ErrAltered, broken)
		}
		if _, err := p.take(r); err != nil {
			return err
		}
	}
	if tail != t.row.Tail {
		return fmt.Errorf("%w: the log ends with event %d, and was to end with %d", journal.ErrAltered, tail.Seq, t.row.Tail.Seq)
	}
	return nil
}

// lost estimates what a model call has spent whose worker died: what it was sent,
// and what had been seen of its answer, at four bytes a token.
func (t *tenure) lost() signal.Usage {
	if t.state.Phase != run.Answering {
		return signal.Usage{}
	}
	var shown int64
	for _, n := range t.ends {
		shown += n
	}
	return signal.Usage{Input: t.told.Bytes / 4, Output: shown / 4, Estimated: true}
}

// snapshotVersion is the form of the engine's snapshots; the run's own form is
// inside, with a version of its own.
const snapshotVersion = 1

type storedSnapshot struct {
	State json.RawMessage `json:"state"`
	Told  told            `json:"told"`
}

// snapshot is the run as it stands, if one is due and can be taken: behind the
// last event that is to be written. Taking one starts the count of bytes anew.
func (t *tenure) snapshot(atEnd bool) ([]byte, error) {
	if !atEnd || !t.since.SnapshotDue() {
		return nil, nil
	}
	state, err := run.MarshalState(t.state)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(storedSnapshot{State: state, Told: t.told})
	if err != nil {
		return nil, fmt.Errorf("encode a snapshot: %w", err)
	}
	t.since.Since, t.since.SnapshotBytes = 0, int64(len(b))
	return b, nil
}

func unmarshalSnapshot(s journal.Snapshot) (p replay, err error) {
	if s.Version != snapshotVersion {
		return p, fmt.Errorf("the snapshot at %d has form %d; this stoplog knows %d", s.Seq, s.Version, snapshotVersion)
	}
	var stored storedSnapshot
	if err := json.Unmarshal(s.State, &stored); err != nil {
		return p, fmt.Errorf("decode the snapshot at %d: %w", s.Seq, err)
	}
	p.told = stored.Told
	p.state, err = run.UnmarshalState(stored.State)
	return p, err
}
