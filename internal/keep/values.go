// Package keep is what the door keeps in the journal beside its records, sealed:
// what placeholders stand for, and answers that wait for a person.
//
//	govern.Values     ──► a secret of the journal for each placeholder of a conversation
//	govern.Approvals  ──► a question, and a secret that is the answer
//
// # Laws
//
// What is kept is sealed, or it is not kept: without a key each of these fails, or
// remembers in this process alone, and says so.
//
// Names do not show: a conversation is known in the journal by a keyed digest.
package keep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/journal"
)

// valueTime is how long what a placeholder stands for is kept after the last one
// of its conversation was added: as long as anybody goes on with one.
const valueTime = 7 * 24 * time.Hour

// valueKind is the kind of the journal's secrets that are values.
const valueKind = "placeholder"

// Values keeps in the journal what placeholders stand for. It is a govern.Values.
type Values struct {
	Store  journal.Store
	Tenant string
}

// owner is a conversation as the journal knows it.
func (v Values) owner(conversation string) string {
	return v.Store.Key().Digest([]byte("stoplog conversation " + conversation)).String()
}

// Values implements [govern.Values].
func (v Values) Values(ctx context.Context, conversation string) (map[string]string, error) {
	found, err := v.Store.Secrets(ctx, v.Tenant, valueKind, v.owner(conversation))
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(found))
	for _, s := range found {
		values[s.Name] = string(s.Value)
	}
	return values, nil
}

// Add implements [govern.Values]. It returns once the values are durable.
func (v Values) Add(ctx context.Context, conversation string, values map[string]string) error {
	owner, until := v.owner(conversation), time.Now().Add(valueTime)
	var secrets []journal.Secret
	for name, value := range values {
		secrets = append(secrets, journal.Secret{Kind: valueKind, Owner: owner, Name: name, Value: []byte(value), Until: until})
	}
	err := v.Store.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
		if err := tx.Keep(ctx, v.Tenant, secrets...); err != nil {
			return err
		}
		_, err := tx.KeepUntil(ctx, v.Tenant, valueKind, owner, until)
		return err
	})
	if errors.Is(err, journal.ErrExists) {
		return fmt.Errorf("%w: %w", govern.ErrTaken, err)
	}
	return err
}
