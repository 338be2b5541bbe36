package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/disclosure"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/allowance"
	"github.com/stoplog/stoplog/internal/cassette"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/gateway"
	"github.com/stoplog/stoplog/internal/wire"
)

// compileGuards makes the guards of a configuration, of which some look for values
// that were found, and some ask by the door, which need not be there yet. key keys the fingerprints of findings.
func compileGuards(conf *config.Config, found config.Secrets, door http.RoundTripper, key []byte) (map[string]guard.Guard, error) {
	guards := map[string]guard.Guard{}
	for _, g := range conf.Guards {
		if g.Judge != nil {
			guards[g.Name] = judgeOf(conf, g, found, door, key)
			continue
		}
		if len(g.Literals) > 0 {
			l := match.NewLiterals(match.LiteralOptions{Name: g.Name, Evasions: match.Evasions, Key: key, Verdict: g.Verdict})
			for _, value := range found.Literals[g.Name] {
				if _, err := l.Add(value.From, value.Value); err != nil {
					return nil, fmt.Errorf("guard %s: %w", g.Name, err)
				}
			}
			guards[g.Name] = l
			continue
		}
		if g.IsDisclosure() {
			verdict := g.Verdict
			if verdict == guard.Allow && !g.Labels {
				verdict = guard.Redact
			}
			guards[g.Name] = disclosure.New(disclosure.Options{Name: g.Name, Key: key, Verdict: verdict})
			continue
		}
		selected, err := conf.Select(g.Rules...)
		if err != nil {
			return nil, fmt.Errorf("guard %s: %w", g.Name, err)
		}
		if g.Labels {
			for i := range selected {
				selected[i].Verdict = guard.Allow
			}
		}
		engine, err := match.Compile(selected, match.Options{Name: g.Name, Evasions: match.Evasions, Key: key, Verdict: g.Verdict})
		if err != nil {
			return nil, err
		}
		if guards[g.Name] = engine; g.IsInjection() {
			guards[g.Name] = guard.Only(engine, guard.ToolResult, guard.Document)
		}
	}
	return guards, nil
}

// openDoor makes the door that a configuration describes. What passes between it
// and an upstream is heard by tapes, unless that is nil. kept says where the door
// keeps what it must remember, and book what people let pass.
func openDoor(conf *config.Config, found config.Secrets, guards map[string]guard.Guard, book *allowance.Book, kept govern.Config, tapes *cassette.Recorder) (*govern.Transport, error) {
	cfg := kept
	for _, r := range conf.Rates {
		cfg.Rates = append(cfg.Rates, govern.Rate(r))
	}
	cfg.MaxBody = conf.MaxBodyBytes
	for _, u := range conf.Upstreams {
		up, err := upstream(u, found)
		if err != nil {
			return nil, err
		}
		if tapes != nil {
			if up.Transport, err = recorded(tapes, up); err != nil {
				return nil, err
			}
		}
		cfg.Upstreams = append(cfg.Upstreams, up)
	}
	classes := findingClasses(conf)
	for _, p := range conf.Profiles {
		models := p.Models
		if p.Model != "" { // what the loop asks it may ask
			models = append(slices.Clone(models), p.Model)
		}
		cfg.Profiles = append(cfg.Profiles, govern.Profile{
			Name: p.Name, Upstreams: p.Upstreams, Models: models, Tools: toolRules(p),
			Input: members(guards, p.Input), Output: members(guards, p.Output), Reversible: reversible(p.Input), MaxHold: int64(p.MaxHoldBytes),
			Allowed: book.For(p.Name), ReserveTokens: p.ReserveTokens, Media: govern.Media(p.Media),
			ToolClauses: toolClauses(p), Calls: callRules(p),
			DataClass: classOf(p.DataClass), Ceilings: ceilings(p), ClassOf: classes,
		})
	}
	return govern.Open(cfg)
}

// toolRules are a profile's rules for the tools that there are on this system.
func toolRules(p config.Profile) map[string]govern.ToolRule {
	rules := map[string]govern.ToolRule{}
	for _, t := range p.Tools {
		if t.Name != "run_command" || runtime.GOOS == "linux" {
			if rule := t.Rule(); rule != "" {
				rules[t.Name] = govern.ToolRule(rule)
			}
		}
	}
	return rules
}

// formats are what upstreams speak, by protocol.
var formats = map[string]*wire.Format{govern.OpenAI: wire.OpenAIChat, govern.Anthropic: wire.AnthropicMessages}

// upstream is a place where models are, with the secrets that it was given.
func upstream(u config.Upstream, found config.Secrets) (govern.Upstream, error) {
	up := govern.Upstream{Name: u.Name, Protocol: u.Protocol, Zone: u.Zone, BaseURL: u.BaseURL, Key: found.Keys[u.Name], Retries: u.Retries, Header: http.Header{}}
	if len(u.Cassettes) > 0 {
		var err error
		up.Transport, err = openCassettes(u)
		return up, err
	}
	for _, h := range u.Headers {
		up.Header.Set(h.Name, cmp.Or(h.Value, found.Headers[u.Name][h.Name]))
	}
	if u.Azure != nil {
		up.Azure = &govern.Azure{APIVersion: u.Azure.APIVersion, Deployments: map[string]string{}}
		for _, d := range u.Azure.Deployments {
			up.Azure.Deployments[d.Model] = d.Name
		}
	}
	up.Dial = govern.Dial{
		EnvironmentProxy: u.Proxy == "environment",
		ConnectTimeout:   u.Timeouts.Connect, HeaderTimeout: u.Timeouts.Header, IdleTimeout: u.Timeouts.Idle,
	}
	if !up.Dial.EnvironmentProxy {
		up.Dial.Proxy = cmp.Or(found.Proxies[u.Name], u.Proxy)
	}
	if u.CA == "" {
		return up, nil
	}
	var err error
	if up.Dial.RootCAs, err = os.ReadFile(u.CA); err != nil {
		return up, fmt.Errorf("upstream %s: read its authorities: %w", u.Name, err)
	}
	return up, nil
}

// recorded is the way to an upstream, heard by a recorder.
func recorded(tapes *cassette.Recorder, up govern.Upstream) (http.RoundTripper, error) {
	next := up.Transport
	if next == nil {
		var err error
		if next, err = up.Dial.Open(up.BaseURL); err != nil {
			return nil, fmt.Errorf("upstream %s: %w", up.Name, err)
		}
	}
	return tapes.Upstream(cassette.Upstream{Name: up.Name, Format: formats[up.Protocol], BaseURL: up.BaseURL, Next: next}), nil
}

// openTapes makes a recorder into a folder. It scrubs by every rule for secrets
// and for people's data, whatever the configuration asks of its guards: a file
// goes further than an answer.
func openTapes(dir string, key []byte, say func(string)) (*cassette.Recorder, error) {
	var scrub []guard.Member
	for name, packs := range map[string][]string{"secrets": {"secrets", "credentials"}, "pii": {"pii"}} {
		selected, err := rules.Select(packs...)
		if err != nil {
			return nil, err
		}
		g, err := match.Compile(selected, match.Options{Name: name, Evasions: match.Evasions, Key: key, Verdict: guard.Redact})
		if err != nil {
			return nil, err
		}
		scrub = append(scrub, guard.Member{Guard: g})
	}
	return cassette.NewRecorder(dir, guard.NewChain(guard.Options{}, scrub...), say)
}

// openCassettes makes an upstream of recorded exchanges.
func openCassettes(u config.Upstream) (http.RoundTripper, error) {
	c, err := cassette.Open(u.Cassettes...)
	if err != nil {
		return nil, err
	}
	c.Pace, err = cassette.ParsePace(u.Pace)
	return c, err
}

func members(guards map[string]guard.Guard, uses []config.Use) []guard.Member {
	var ms []guard.Member
	for _, u := range uses {
		ms = append(ms, guard.Member{Guard: guards[u.Guard], Mode: u.Mode})
	}
	return ms
}

// reversible are the guards whose redactions come back.
func reversible(uses []config.Use) []string {
	var names []string
	for _, u := range uses {
		if u.Reversible {
			names = append(names, u.Guard)
		}
	}
	return names
}

// mounts are the provider interfaces that a configuration serves.
func mounts(conf *config.Config) []gateway.Mount {
	var ms []gateway.Mount
	for _, m := range []struct {
		protocol string
		mount    config.Mount
	}{{govern.OpenAI, conf.Gateway.OpenAI}, {govern.Anthropic, conf.Gateway.Anthropic}} {
		if m.mount.Profile != "" {
			ms = append(ms, gateway.Mount{Protocol: m.protocol, Profiles: m.mount.Choices})
		}
	}
	return ms
}

// stateDir is where this program keeps what it must remember.
func stateDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "stoplog"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("neither XDG_STATE_HOME nor HOME is set: there is nowhere to keep the record")
	}
	return filepath.Join(home, ".local", "state", "stoplog"), nil
}
