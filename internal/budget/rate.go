package budget

import (
	"fmt"
	"sync"
	"time"
)

// PerMinute is how much may begin in a minute; 0 is no limit.
type PerMinute struct {
	Requests, Tokens int64
}

// Limiter holds callers to rates, each by a token bucket that a minute's worth
// fits into. It remembers nothing beyond its process, in which each caller has
// the whole of its rate. The zero Limiter is ready to use, by several goroutines.
//
// Of tokens, what is asked for is taken at once and what was not used is given
// back with [Pass.Settle]: a caller who asks for much waits for it even if it
// then uses little.
type Limiter struct {
	mu      sync.Mutex
	buckets map[string]*bucket
	swept   time.Time
}

// bucket is what a caller has left, in 60ths: so much comes back in a second as
// may begin in a minute.
type bucket struct {
	rate             PerMinute
	requests, tokens int64
	at               time.Time // up to when that was counted
}

// second is how many parts a request or a token has.
const second = 60

// Pass is leave to begin.
type Pass struct {
	limiter *Limiter
	names   []string
	tokens  int64
}

// Slow says that a caller must wait.
type Slow struct {
	Name  string // whose rate it is
	What  string // requests or tokens
	Limit int64
	// After is how long until so much is there; 0 where it never is, because more
	// is asked for than a minute's worth.
	After time.Duration
}

// String says it in a sentence, with figures.
func (s *Slow) String() string {
	if s.After == 0 {
		return fmt.Sprintf("%s may use %d %s a minute, and this asks for more at once", s.Name, s.Limit, s.What)
	}
	return fmt.Sprintf("%s may use %d %s a minute: ask again in %s", s.Name, s.Limit, s.What, s.After.Round(time.Second))
}

// Rated is somebody with a rate: a key, a team.
type Rated struct {
	Name string
	Rate PerMinute
}

// Begin takes one request and so many tokens from everyone named, or from none.
// Of the results one is nil.
func (l *Limiter) Begin(now time.Time, tokens int64, all ...Rated) (*Pass, *Slow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	p := &Pass{limiter: l, tokens: max(tokens, 0)}
	for _, r := range all {
		b := l.bucket(r, now)
		if slow := b.lacks(r, p.tokens); slow != nil {
			return nil, slow
		}
	}
	for _, r := range all {
		if r.Rate == (PerMinute{}) {
			continue
		}
		b := l.buckets[r.Name]
		b.requests -= second
		b.tokens = plus(b.tokens, -times(p.tokens, second))
		p.names = append(p.names, r.Name)
	}
	return p, nil
}

// Settle puts the tokens that were used in the place of those that were asked
// for. Only the first call counts.
func (p *Pass) Settle(used int64) {
	if p == nil || p.limiter == nil {
		return
	}
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	for _, name := range p.names {
		if b := p.limiter.buckets[name]; b != nil {
			b.tokens = min(plus(b.tokens, times(p.tokens, second)-times(max(used, 0), second)), times(b.rate.Tokens, second))
		}
	}
	p.names = nil
}

// bucket is somebody's bucket, filled up to now. A rate that has changed holds at
// once.
func (l *Limiter) bucket(r Rated, now time.Time) *bucket {
	full := bucket{rate: r.Rate, requests: times(r.Rate.Requests, second), tokens: times(r.Rate.Tokens, second), at: now}
	if r.Rate == (PerMinute{}) {
		return &full
	}
	b := l.buckets[r.Name]
	if b == nil {
		if l.buckets == nil {
			l.buckets = map[string]*bucket{}
		}
		l.buckets[r.Name] = &full
		return &full
	}
	if passed := int64(now.Sub(b.at) / time.Second); passed > 0 {
		b.at = b.at.Add(time.Duration(passed) * time.Second)
		b.requests = plus(b.requests, times(passed, r.Rate.Requests))
		b.tokens = plus(b.tokens, times(passed, r.Rate.Tokens))
	}
	b.rate = r.Rate
	b.requests, b.tokens = min(b.requests, full.requests), min(b.tokens, full.tokens)
	return b
}

// lacks says what is not there of a request and its tokens.
func (b *bucket) lacks(r Rated, tokens int64) *Slow {
	for _, part := range []struct {
		what              string
		rate, have, needs int64
	}{
		{"requests", r.Rate.Requests, b.requests, second}, {"tokens", r.Rate.Tokens, b.tokens, times(tokens, second)},
	} {
		switch {
		case part.rate <= 0 || part.have >= part.needs:
		case part.needs > times(part.rate, second):
			return &Slow{Name: r.Name, What: part.what, Limit: part.rate}
		default:
			missing := plus(part.needs, -part.have)
			return &Slow{Name: r.Name, What: part.what, Limit: part.rate, After: time.Duration((missing+part.rate-1)/part.rate) * time.Second}
		}
	}
	return nil
}

// sweep forgets, now and then, those who have not come for a minute: they have
// all of their rate again.
func (l *Limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < time.Minute {
		return
	}
	l.swept = now
	for name, b := range l.buckets {
		if now.Sub(b.at) > time.Minute && b.requests >= 0 && b.tokens >= 0 {
			delete(l.buckets, name)
		}
	}
}
