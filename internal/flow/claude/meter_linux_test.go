package claude

import (
	"testing"

	"github.com/stoplog/stoplog/internal/signal"
)

func TestMeter(t *testing.T) {
	ended := 0
	m := newMeter(100)
	m.turn(func() { ended++ })
	m.reported("a", usage{Input: 10, CacheRead: 5, CacheCreation: 5, Output: 1})
	m.reported("a", usage{Input: 10, CacheRead: 5, CacheCreation: 5, Output: 1}) // told again: it counts once
	m.streamed("a", 80)                                                          // an estimate of 20 tokens
	if n, over := m.state(); n != 40 || over {
		t.Errorf("%d tokens, over: %v", n, over)
	}
	if u := m.usage(); u != (signal.Usage{Input: 20, Output: 20, Estimated: true}) {
		t.Errorf("%+v", u)
	}
	m.reported("a", usage{Output: 8}) // the end of it: what it really was
	m.settled("a")
	if u := m.usage(); u != (signal.Usage{Input: 20, Output: 8}) {
		t.Errorf("%+v", u)
	}
	m.reported("sub-agent", usage{Input: 72})
	if n, over := m.state(); n != 100 || over || ended != 0 {
		t.Errorf("at the cap: %d tokens, over: %v, ended %d times", n, over, ended)
	}
	if m.wanted() || ended != 1 {
		t.Errorf("a call with nothing left: ended %d times", ended)
	}
	m.streamed("b", 4000)
	if n, over := m.state(); n != 1100 || !over || ended != 1 {
		t.Errorf("over the cap: %d tokens, over: %v, ended %d times", n, over, ended)
	}
}

// What came before a turn counts, and nobody is ended between two.
func TestMeterTurns(t *testing.T) {
	m := newMeter(100)
	m.reported("a", usage{Input: 60})
	ended := 0
	m.turn(func() { ended++ })
	m.reported("b", usage{Input: 60})
	m.turn(nil)
	m.reported("c", usage{Input: 60})
	if n, over := m.state(); n != 180 || !over || ended != 1 {
		t.Errorf("%d tokens, over: %v, ended %d times", n, over, ended)
	}
}
