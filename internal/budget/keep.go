package budget

import (
	"context"
	"crypto/rand"
	"time"
)

const (
	// look is how often the keeper looks at leases and at the clock.
	look = 30 * time.Second
	// behind is how long what is spent outside of any limit may wait to be written.
	behind = time.Second
)

// extent is how much a writing looks at.
type extent uint8

const (
	changes extent = iota // what has changed
	all                   // leases and days too
	last                  // everything is given up
)

func newOwner() string { return rand.Text() }

// keep writes what is to be written, until the purse is closed. It is the one
// goroutine that speaks to the ledger.
func (p *Purse) keep() {
	defer close(p.kept)
	tick := time.NewTicker(look)
	defer tick.Stop()
	late := time.NewTimer(behind)
	defer late.Stop()
	for {
		much := changes
		select {
		case <-p.kick:
		case <-late.C:
		case <-tick.C:
			much = all
		case <-p.quit:
			p.last = p.write(context.Background(), last)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), p.patience)
		_ = p.write(ctx, much) // those who wait hear of it; the rest is tried again
		cancel()
		if p.unwritten() {
			late.Reset(behind)
		}
	}
}

// unwritten reports whether something is to be written that may wait.
func (p *Purse) unwritten() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.dirty) > 0
}

// write writes what is to be written now.
func (p *Purse) write(ctx context.Context, much extent) error {
	began := p.now()
	p.mu.Lock()
	if much == all {
		p.review(began)
	}
	if much == last {
		for _, s := range p.shares {
			if !s.limit.None() {
				p.touch(s, began)
			}
		}
	}
	written, entries, asked, wait := p.entries(began, much == last)
	p.mu.Unlock()
	if len(entries) == 0 {
		return nil
	}
	standings, err := p.ledger.Write(ctx, p.owner, wait, entries)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range written {
		if s.answered = asked[i]; err != nil {
			s.failed(err)
			p.touch(s, began)
			continue
		}
		s.written(entries[i], standings[i], began)
	}
	close(p.changed)
	p.changed = make(chan struct{})
	return err
}

// entries are what is to be written, if some of it may not wait or has waited
// long enough; wait says whether somebody waits for it.
func (p *Purse) entries(now time.Time, closing bool) (written []*share, entries []Entry, asked []uint64, wait bool) {
	due := closing
	for _, s := range p.dirty {
		due = due || !s.limit.None() || now.Sub(s.since) >= behind
		wait = wait || s.asked > s.answered || closing
	}
	if !due {
		return nil, nil, nil, false
	}
	written, p.dirty = p.dirty, nil
	for _, s := range written {
		entries, asked = append(entries, s.entry(now, closing)), append(asked, s.asked)
		s.needs = Amount{}
	}
	return written, entries, asked, wait
}

// review makes the shares that are to be ready: today's, and tomorrow's shortly
// before today ends. It writes again what would run out, and forgets what nobody
// needs.
func (p *Purse) review(now time.Time) {
	for _, day := range []Day{DayOf(now), DayOf(now.Add(2 * look))} {
		for _, e := range p.envelopes {
			if e.Kind == Run || e.Limit.None() {
				continue
			}
			if s := p.share(e.Scope, e.Limit, day); !s.fixed {
				s.fixed = true
				p.touch(s, now)
			}
		}
	}
	for id, s := range p.shares {
		if s.stale(now) {
			p.touch(s, now)
		} else if s.idle(now) {
			delete(p.shares, id)
		}
	}
}
