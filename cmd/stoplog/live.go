package main

import (
	"context"
	"iter"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
)

// liveText is what an engine knows of text before its journal does.
type liveText struct{ engine *engine.Engine }

// Text implements [chat.Live].
func (l liveText) Text(ctx context.Context, ref journal.Ref) iter.Seq2[chat.Delta, error] {
	return func(yield func(chat.Delta, error) bool) {
		for n, err := range l.engine.Watch(ctx, ref, 0) {
			if err != nil {
				yield(chat.Delta{}, err)
				return
			}
			shown, ok := n.(engine.Shown)
			if !ok || shown.Seq != 0 {
				continue // the reader has it from the journal
			}
			d := chat.Delta{Step: shown.Step, Attempt: shown.Attempt, Channel: shown.Channel, Start: shown.Start, Text: shown.Text}
			if !yield(d, nil) {
				return
			}
		}
	}
}
