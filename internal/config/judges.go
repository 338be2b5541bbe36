package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/diag"
)

// Judge says how a guard asks a model, or a service, what is wrong with a text.
type Judge struct {
	// Profile is the one under which a model is asked, with the model that it
	// names; it uses no guard that asks. Rules are the rubric. Empty for a service.
	Profile string
	Rules   []JudgeRule
	// URL is the service's, and Key what it is sent as a bearer token; empty for a
	// model.
	URL string
	Key Key

	Whole    bool // texts are judged at their end, and not in windows
	Timeout  time.Duration
	Ahead    int // windows of a text that may be in question at once
	InFlight int // of all texts
	Retries  int

	At diag.Span // where the profile is named
}

// JudgeRule is one rule of a rubric.
type JudgeRule struct{ Name, Text string }

// What a guard says of how it asks, before it means anything.
type judgeDecl struct {
	what                     at[string] // llm_judge or http, where it stands
	flawed                   bool
	profile, url, key, pace  at[string]
	rules                    []headerDecl
	timeout                  at[time.Duration]
	ahead, inFlight, retries at[int64]
}

func (d decoder) judge(m member, s shape) *judgeDecl {
	j := &judgeDecl{what: at[string]{m.Key, m.Span, true}}
	members, flawed := d.members(m.Value, s)
	j.flawed = flawed
	for _, m := range members {
		switch m.Key {
		case "profile":
			j.profile = d.text(m.Value, m.Key)
		case "rules":
			j.rules = d.pairs(m, "rule")
		case "url":
			j.url = d.text(m.Value, m.Key)
		case "key":
			j.key = d.key(m.Value)
		case "pace":
			j.pace = d.oneOf(m.Value, m.Key, "window", "whole")
		case "timeout":
			j.timeout = d.duration(m.Value, m.Key, time.Second, 10*time.Minute)
		case "ahead":
			j.ahead = d.integer(m.Value, m.Key, 1, 64)
		case "in_flight":
			j.inFlight = d.integer(m.Value, m.Key, 1, 1024)
		case "retries":
			j.retries = d.integer(m.Value, m.Key, 0, 10)
		}
	}
	return j
}

// judge completes a guard that asks.
func (s *resolver) judge(g *Guard, d guardDecl) {
	j := d.judge
	made := &Judge{Timeout: 10 * time.Second, Ahead: 2, InFlight: 8, Retries: 1, Whole: j.pace.value == "whole", At: j.profile.span}
	g.Judge = made
	if d.rules.written() || d.literals.written() {
		s.Errorf(j.what.span, "make two guards of it", "guard %q asks, and has rules or literals too", g.Name)
	}
	if g.Labels {
		s.Errorf(d.verdict.span, "", "what a guard that asks finds is not let be: verdict cannot be \"allow\"")
	}
	if g.Verdict == guard.Allow {
		g.Verdict = guard.Redact
	}
	if j.timeout.set {
		made.Timeout = j.timeout.value
	}
	for to, set := range map[*int]at[int64]{&made.Ahead: j.ahead, &made.InFlight: j.inFlight, &made.Retries: j.retries} {
		if set.set {
			*to = int(set.value)
		}
	}
	if j.what.value == "http" {
		s.service(g, j)
		return
	}
	made.Profile = j.profile.value
	if !j.profile.written() && !j.flawed {
		s.Errorf(j.what.span, "write profile: NAME, of one that names a model and no guard that asks", "guard %q has no profile under which to ask", g.Name)
	}
	if len(j.rules) == 0 && !j.flawed {
		s.Errorf(j.what.span, "write rules: {NAME: what breaks it}", "guard %q has no rules to judge by", g.Name)
	}
	for _, r := range j.rules {
		if !nameForm.MatchString(r.name.value) {
			s.Errorf(r.name.span, "use letters, digits, `_`, `.` and `-`, at most 64 of them", "%q is not a name", r.name.value)
		}
		made.Rules = append(made.Rules, JudgeRule{r.name.value, r.value.value})
	}
}

// service completes a guard that asks a service.
func (s *resolver) service(g *Guard, j *judgeDecl) {
	u, err := url.Parse(j.url.value)
	switch {
	case !j.url.written():
		if !j.flawed {
			s.Errorf(j.what.span, "write url: https://…", "guard %q has no service to ask", g.Name)
		}
	case !j.url.set:
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		s.Errorf(j.url.span, "write one such as https://judge.example.com/v1", "url is not an http or https address")
	case u.User != nil:
		s.Errorf(j.url.span, "give the key as key: env:NAME or file:PATH", "url holds credentials")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		s.warnf(j.url.span, "", "guard %q asks without encryption: text and key can be read on the way", g.Name)
	}
	g.Judge.URL = j.url.value
	if j.key.set {
		g.Judge.Key, _ = s.reference(j.key)
	}
}

// judgesOf checks that guards that ask a model do so under a profile that can, and
// that asks nobody in turn.
func (s *resolver) judgesOf(c *Config) {
	for _, g := range c.Guards {
		if g.Judge == nil || g.Judge.URL != "" || g.Judge.Profile == "" {
			continue
		}
		p, ok := s.profiles[g.Judge.Profile]
		if !ok {
			var known []string
			for _, d := range s.doc.profiles {
				known = append(known, d.name.value)
			}
			s.noSuch("profile", at[string]{g.Judge.Profile, g.Judge.At, true}, known)
			continue
		}
		if p.Model == "" {
			s.Errorf(g.Judge.At, "write model: NAME in the profile", "profile %q names no model for guard %q to ask", p.Name, g.Name)
		}
		for _, use := range slices.Concat(p.Input, p.Output) {
			if asked, ok := named(s.guards, use.Guard, guardName); ok && asked.Judge != nil {
				s.Errorf(g.Judge.At, "name a profile that uses no guard that asks", "guard %q asks under profile %q, which asks in turn by guard %q", g.Name, p.Name, asked.Name)
				break
			}
		}
	}
}

// printed gives what is in force in the shape of the file.
func (j *Judge) printed() (key string, o object) {
	pace := "window"
	if j.Whole {
		pace = "whole"
	}
	if key = "llm_judge"; j.URL != "" {
		key, o = "http", object{{"url", j.URL}}
		if !j.Key.IsZero() {
			o = append(o, field{"key", j.Key.String()})
		}
	} else {
		rules := object{}
		for _, r := range j.Rules {
			rules = append(rules, field{r.Name, strings.TrimSpace(r.Text)})
		}
		o = object{{"profile", j.Profile}, {"rules", rules}}
	}
	return key, append(o, field{"pace", pace}, field{"timeout", short(j.Timeout)}, field{"ahead", int64(j.Ahead)},
		field{"in_flight", int64(j.InFlight)}, field{"retries", int64(j.Retries)})
}
