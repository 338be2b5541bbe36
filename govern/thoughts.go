package govern

import (
	"context"

	"github.com/stoplog/stoplog/internal/wire"
)

// A thought that a guard changed went out without its signature: its provider would
// refuse it. What was signed is kept with the values of placeholders, under the
// caller, the upstream and what was shown, and goes back to that upstream, and to no
// other, when the caller sends what was shown.
const (
	thoughtText      = "original"
	thoughtSignature = "signature"
)

// thought is under which name a thought is kept.
func (c *call) thought(upstream, shown string) string {
	return conversation(c.who(), c.profile.Name, "thought", []byte(upstream+"\x00"+shown))
}

// recalls reports whether thoughts are kept.
func (c *call) recalls() bool { return c.route.protocol == Anthropic && !c.route.models }

// recall finds what the first upstream has signed of a thought.
func (c *call) recall(shown string) (wire.Thought, bool) {
	kept, err := c.t.values.Values(c.ctx, c.thought(c.upstreams()[0].Name, shown))
	if err != nil || kept[thoughtSignature] == "" {
		return wire.Thought{}, false // it goes out as it came
	}
	return wire.Thought{Shown: shown, Original: kept[thoughtText], Signature: kept[thoughtSignature]}, true
}

// remember keeps thoughts. One that cannot be kept is one that does not go back:
// nothing else depends on it.
func (c *call) remember(thoughts []wire.Thought) {
	for _, t := range thoughts {
		_ = c.t.values.Add(context.WithoutCancel(c.ctx), c.thought(c.upstream.Name, t.Shown),
			map[string]string{thoughtText: t.Original, thoughtSignature: t.Signature})
	}
}
