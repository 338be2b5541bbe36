package allowance

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/journal"
)

// Book is what is allowed, as the journal has it now. It follows the log, whoever
// writes it, in whatever process. It is safe for use by several goroutines.
type Book struct {
	current atomic.Pointer[map[Key]Allowance]
	stop    context.CancelFunc
	ended   chan struct{}
}

// again is how long a book waits where there is nothing to follow: nobody has
// allowed anything yet, or the journal could not be read.
const again = time.Second

// Open reads what is allowed, and follows it until Close.
func Open(ctx context.Context, s journal.Store, tenant string) (*Book, error) {
	b := &Book{ended: make(chan struct{})}
	book := map[Key]Allowance{}
	at, err := read(ctx, s, tenant, 0, book)
	if err != nil {
		return nil, err
	}
	b.current.Store(&book)
	ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	go b.follow(ctx, s, tenant, at)
	return b, nil
}

// Close ends the following. What was allowed last stays.
func (b *Book) Close() {
	b.stop()
	<-b.ended
}

// follow applies what is written behind an event, until the context ends or the
// store is closed.
func (b *Book) follow(ctx context.Context, s journal.Store, tenant string, at uint64) {
	defer close(b.ended)
	for {
		err := s.Await(ctx, logOf(tenant), at)
		if ctx.Err() != nil || errors.Is(err, journal.ErrClosed) {
			return
		}
		if err == nil {
			book := maps.Clone(*b.current.Load())
			if at, err = read(ctx, s, tenant, at, book); err == nil {
				b.current.Store(&book)
				continue
			}
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return
		}
	}
}

// For returns what a chain asks for each channel under a profile: its
// guard.Options.Allowed. A nil Book allows nothing.
func (b *Book) For(profile string) func() guard.Allowed {
	if b == nil {
		return nil
	}
	return func() guard.Allowed {
		book, now := *b.current.Load(), time.Now()
		if len(book) == 0 {
			return nil
		}
		return func(f guard.Finding) *guard.Allowance {
			a, ok := book[Key{Profile: profile, Rule: f.Rule, Fingerprint: f.Fingerprint}]
			if !ok || !a.Until.After(now) {
				return nil
			}
			return &a.Allowance
		}
	}
}
