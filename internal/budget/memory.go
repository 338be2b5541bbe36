package budget

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a ledger that forgets everything with its process: for libraries
// that bring no store, and for tests.
type Memory struct {
	now func() time.Time

	mu       sync.Mutex
	accounts map[ID]*memoryAccount
}

type memoryAccount struct {
	spent  Debit
	blocks map[string]Block
}

// NewMemory returns an empty ledger; now nil is time.Now.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, accounts: map[ID]*memoryAccount{}}
}

// Write implements [Ledger].
func (m *Memory) Write(ctx context.Context, owner string, _ bool, entries []Entry) ([]Standing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []Standing
	for _, e := range entries {
		out = append(out, m.write(owner, e))
	}
	return out, nil
}

func (m *Memory) write(owner string, e Entry) Standing {
	a := m.accounts[e.ID]
	if a == nil {
		a = &memoryAccount{blocks: map[string]Block{}}
		m.accounts[e.ID] = a
	}
	var others Amount
	for who, b := range a.blocks {
		switch {
		case who == owner:
		case b.Until.Before(m.now()):
			a.spent = a.spent.Plus(b.Expire())
			delete(a.blocks, who)
		default:
			others = others.Plus(b.Amount)
		}
	}
	s := e.Apply(a.spent, others)
	a.spent = s.Spent
	if delete(a.blocks, owner); s.Block != (Amount{}) || e.Held != (Amount{}) {
		a.blocks[owner] = Block{Amount: s.Block, Held: e.Held, Until: m.now().Add(Lease)}
	}
	return s
}

// Accounts implements [Ledger].
func (m *Memory) Accounts(_ context.Context, day Day) ([]Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Account
	for id, a := range m.accounts {
		if id.Day != day && (id.Day != 0 || len(a.blocks) == 0) {
			continue
		}
		acc := Account{ID: id, Spent: a.spent}
		for _, b := range a.blocks {
			acc.Blocked, acc.Held = acc.Blocked.Plus(b.Amount), acc.Held.Plus(b.Held)
		}
		out = append(out, acc)
	}
	slices.SortFunc(out, func(a, b Account) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}
