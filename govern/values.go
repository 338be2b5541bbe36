package govern

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/stoplog/stoplog/guard"
)

// maxConversations is how many conversations are remembered where nobody keeps
// them: those that spoke last.
const maxConversations = 1024

// remembered are values that die with the process.
type remembered struct {
	mu    sync.Mutex
	by    map[string]map[string]string
	order []string // the last used last
}

func (r *remembered) Values(_ context.Context, conversation string) (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.touch(conversation)
	return maps.Clone(r.by[conversation]), nil
}

func (r *remembered) Add(_ context.Context, conversation string, values map[string]string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	have := r.by[conversation]
	for name := range values {
		if _, ok := have[name]; ok {
			return fmt.Errorf("%s: %w", name, ErrTaken)
		}
	}
	if have == nil {
		if len(r.by) >= maxConversations {
			delete(r.by, r.order[0])
			r.order = r.order[1:]
		}
		if r.by == nil {
			r.by = map[string]map[string]string{}
		}
		have = map[string]string{}
		r.by[conversation] = have
		r.order = append(r.order, conversation)
	}
	maps.Copy(have, values)
	r.touch(conversation)
	return nil
}

// touch makes a conversation the last used.
func (r *remembered) touch(conversation string) {
	if r.by[conversation] == nil {
		return
	}
	for i, c := range r.order {
		if c == conversation {
			r.order = append(append(r.order[:i:i], r.order[i+1:]...), conversation)
			return
		}
	}
}

// checkReversible: a guard can undo only what it does.
func checkReversible(p Profile) error {
	for _, name := range p.Reversible {
		i := slices.IndexFunc(p.Input, func(m guard.Member) bool { return m.Guard.Name() == name })
		if i < 0 || p.Input[i].Mode != guard.Enforce {
			return fmt.Errorf("the guard %q is reversible, and does not enforce on requests", name)
		}
	}
	return nil
}

// watched are the guards of requests, of which the reversible ones only watch.
func watched(p Profile) []guard.Member {
	all := slices.Clone(p.Input)
	for i := range all {
		if slices.Contains(p.Reversible, all[i].Guard.Name()) {
			all[i].Mode = guard.Shadow
		}
	}
	return all
}
