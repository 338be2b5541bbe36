package journal

import (
	"context"
	"time"
)

// Secret is a value that is kept beside the logs until a time, always sealed: an
// answer that waits for a person, what a placeholder stands for. What it means is
// its keeper's business.
type Secret struct {
	Kind  string // of what it is, in its keeper's words
	Owner string // whose it is: an approval, a conversation
	Name  string // which of the owner's
	Value []byte
	// Until is when it is destroyed.
	Until time.Time
}

// SecretWriter keeps secrets. All of it fails where the store has no key to seal
// with, and says how to make one.
type SecretWriter interface {
	// Keep adds secrets; ErrExists if one of a kind, owner and name is there.
	Keep(ctx context.Context, tenant string, secrets ...Secret) error
	// KeepUntil moves the time at which an owner's secrets of a kind are destroyed,
	// and returns how many there are.
	KeepUntil(ctx context.Context, tenant, kind, owner string, until time.Time) (int, error)
	// Destroy destroys an owner's secrets of a kind at once, and returns how many
	// there were.
	Destroy(ctx context.Context, tenant, kind, owner string) (int, error)
}
