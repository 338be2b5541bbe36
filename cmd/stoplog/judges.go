package main

import (
	"errors"
	"net/http"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/dial"
	"github.com/stoplog/stoplog/internal/judge"
)

// A lateDoor is the way for guards that ask, which are made before the door that
// they stand at: it is set once that is open, and before anything passes it.
type lateDoor struct{ door http.RoundTripper }

var errNoDoor = errors.New("the door is not open yet")

func (l *lateDoor) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.door == nil {
		return nil, errNoDoor
	}
	return l.door.RoundTrip(r)
}

// judgeOf makes a guard that asks.
func judgeOf(conf *config.Config, g config.Guard, found config.Secrets, door http.RoundTripper, key []byte) guard.Guard {
	j := g.Judge
	opt := judge.Options{Name: g.Name, Strictest: g.Verdict, Whole: j.Whole, Ahead: j.Ahead, InFlight: j.InFlight, Timeout: j.Timeout, Key: key}
	if j.URL != "" {
		s := &judge.Service{Name: g.Name, URL: j.URL, Header: http.Header{}, Transport: dial.Transport(dial.Options{Allow: []string{j.URL}}), Retries: j.Retries}
		if key := found.Judges[g.Name]; key != "" {
			s.Header.Set("Authorization", "Bearer "+key)
		}
		return judge.New(s, opt)
	}
	m := &judge.Model{Transport: door, Profile: j.Profile, Verdict: g.Verdict, Severity: guard.High, Retries: j.Retries}
	for _, r := range j.Rules {
		m.Rules = append(m.Rules, judge.Rule(r))
	}
	if p, ok := conf.Profile(j.Profile); ok {
		m.Model = p.Model
		if len(p.Upstreams) > 0 {
			first, _ := conf.Upstream(p.Upstreams[0])
			m.Protocol = first.Protocol
		}
	}
	return judge.New(m, opt)
}
