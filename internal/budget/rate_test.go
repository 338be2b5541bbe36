package budget_test

import (
	"math"
	"testing"
	"time"

	. "github.com/stoplog/stoplog/internal/budget"
)

// A caller may begin a minute's worth at once, and then as it comes back: a
// request and so many tokens each second.
func TestLimiter(t *testing.T) {
	var l Limiter
	now := time.Unix(1_800_000_000, 0)
	key := Rated{"key k", PerMinute{Requests: 3, Tokens: 600}}
	team := Rated{"team t", PerMinute{Tokens: 1000}}
	begin := func(tokens int64, all ...Rated) (*Pass, string) {
		t.Helper()
		p, slow := l.Begin(now, tokens, all...)
		if slow != nil {
			return nil, slow.String()
		}
		return p, ""
	}
	expect := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("said %q, want %q", got, want)
		}
	}
	a, said := begin(500, key, team)
	expect(said, "")
	_, said = begin(200, key, team)
	expect(said, "key k may use 600 tokens a minute: ask again in 10s")
	_, said = begin(601, key)
	expect(said, "key k may use 600 tokens a minute, and this asks for more at once")
	_, said = begin(600, team) // what was refused took nothing of the team's
	expect(said, "team t may use 1000 tokens a minute: ask again in 6s")
	a.Settle(100)
	a.Settle(0) // changes nothing
	_, said = begin(500, key, team)
	expect(said, "")
	_, said = begin(0, key)
	expect(said, "")
	_, said = begin(0, key)
	expect(said, "key k may use 3 requests a minute: ask again in 20s")
	now = now.Add(20 * time.Second)
	_, said = begin(200, key)
	expect(said, "")
	_, said = begin(1, key)
	expect(said, "key k may use 3 requests a minute: ask again in 20s")
	now = now.Add(time.Hour)
	for range 3 {
		_, said = begin(200, key)
		expect(said, "")
	}
	_, said = begin(0, key)
	expect(said, "key k may use 3 requests a minute: ask again in 20s")
	_, said = begin(math.MaxInt64, Rated{Name: "nobody limits"})
	expect(said, "")
	_, said = begin(math.MaxInt64, team)
	expect(said, "team t may use 1000 tokens a minute, and this asks for more at once")
}

// What was used beyond what was asked for is owed.
func TestLimiterOwes(t *testing.T) {
	var l Limiter
	now := time.Unix(1_800_000_000, 0)
	key := Rated{"k", PerMinute{Tokens: 60}}
	p, _ := l.Begin(now, 10, key)
	p.Settle(180)
	if _, slow := l.Begin(now, 1, key); slow == nil || slow.After != 121*time.Second {
		t.Errorf("%+v, want to wait 121 s", slow)
	}
	if _, slow := l.Begin(now.Add(121*time.Second), 1, key); slow != nil {
		t.Errorf("after that: %s", slow)
	}
}
