package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// MessagesAdded is the event of a message list that goes on: version 1, payload
// [Messages], Text. Whoever asks a model appends one before the call, so that
// what the model was sent can be read back, word for word, though each message
// was written once.
const MessagesAdded = "messages_added"

// Messages is a part of what models are sent: the list Parent with New behind
// it is the list List.
type Messages struct {
	List   Digest `json:"list"`
	Parent Digest `json:"parent"` // zeros: nothing is before New
	// Run is where the parent was added, if not in this run: the turn before.
	Run ID                `json:"run,omitempty"`
	New []json.RawMessage `json:"new"`
}

// Extend returns the list that is parent with messages behind it. Messages count
// in their canonical form, so the order of members and white space are no part
// of a list's digest.
func (k Key) Extend(parent Digest, messages ...json.RawMessage) (Messages, error) {
	m := Messages{List: parent, Parent: parent, New: make([]json.RawMessage, len(messages))}
	for i, message := range messages {
		form, err := canonical(message)
		if err != nil {
			return Messages{}, fmt.Errorf("message %d behind the list %s: %w", i, parent, err)
		}
		m.New[i] = form
		m.List = k.message(m.List, form)
	}
	return m, nil
}

// Entry returns the event that records the messages.
func (m Messages) Entry() (Entry, error) { return NewEntry(MessagesAdded, 1, Text, m) }

// ReadMessages returns the message list that has the digest and was added in the
// run, with all that it goes on from, in other runs of the tenant too. It fails
// with ErrNotFound if a part was never added, and with ErrPurged if a part is gone.
func ReadMessages(ctx context.Context, r Reader, key Key, ref Ref, list Digest) ([]json.RawMessage, error) {
	fail := func(err error) ([]json.RawMessage, error) {
		return nil, fmt.Errorf("read the message list %s of run %s: %w", list, ref, err)
	}
	var (
		parts [][]json.RawMessage // the last first
		in    = ref
		read  Ref // whose parts are in added
		added map[Digest]Messages
	)
	for want := list; want != (Digest{}); {
		if read != in {
			var err error
			if added, err = messagesOf(ctx, r, in); err != nil {
				return fail(err)
			}
			read = in
		}
		m, ok := added[want]
		if !ok {
			return fail(fmt.Errorf("its part %s in run %s: %w", want, in, ErrNotFound))
		}
		if again, err := key.Extend(m.Parent, m.New...); err != nil || again.List != want {
			return fail(fmt.Errorf("its part %s in run %s was altered", want, in))
		}
		parts = append(parts, m.New)
		want = m.Parent
		if m.Run != "" {
			in.Run = m.Run
		}
	}
	slices.Reverse(parts)
	return slices.Concat(parts...), nil
}

// messagesOf reads the parts that a run added.
func messagesOf(ctx context.Context, r Reader, ref Ref) (map[Digest]Messages, error) {
	added := map[Digest]Messages{}
	for rec, err := range r.Events(ctx, ref, 0) {
		if err != nil {
			return nil, err
		}
		if rec.Kind != MessagesAdded {
			continue
		}
		var m Messages
		if err := rec.Decode(&m); err != nil {
			return nil, err
		}
		// A list may be added twice, by attempts; both say the same.
		added[m.List] = m
	}
	return added, nil
}
