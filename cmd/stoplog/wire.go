package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/cassette"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/dial"
	"github.com/stoplog/stoplog/internal/gateway"
	"github.com/stoplog/stoplog/internal/wire"
)

// openDoor makes the door that a configuration describes. key keys the
// fingerprints of findings. What passes between it and an upstream is heard by
// tapes, unless that is nil.
func openDoor(conf *config.Config, getenv func(string) string, key []byte, record func(...govern.Record) error, tapes *cassette.Recorder) (*govern.Transport, error) {
	keys, err := conf.ReadKeys(getenv)
	if err != nil {
		return nil, err
	}
	guards := map[string]guard.Guard{}
	for _, g := range conf.Guards {
		selected, err := rules.Select(g.Rules...)
		if err != nil {
			return nil, fmt.Errorf("guard %s: %w", g.Name, err)
		}
		if guards[g.Name], err = match.Compile(selected, match.Options{Name: g.Name, Key: key, Verdict: g.Verdict}); err != nil {
			return nil, err
		}
	}
	cfg := govern.Config{Record: record, MaxBody: conf.MaxBodyBytes}
	for _, u := range conf.Upstreams {
		up := govern.Upstream{Name: u.Name, Protocol: u.Protocol, BaseURL: u.BaseURL, Key: keys[u.Name]}
		if len(u.Cassettes) > 0 {
			if up.Transport, err = openCassettes(u); err != nil {
				return nil, err
			}
		}
		if tapes != nil {
			up.Transport = recorded(tapes, up)
		}
		cfg.Upstreams = append(cfg.Upstreams, up)
	}
	for _, p := range conf.Profiles {
		cfg.Profiles = append(cfg.Profiles, govern.Profile{
			Name: p.Name, Upstreams: p.Upstreams, Models: p.Models,
			Input: members(guards, p.Input), Output: members(guards, p.Output), MaxHold: int64(p.MaxHoldBytes),
		})
	}
	return govern.Open(cfg)
}

// formats are what upstreams speak, by protocol.
var formats = map[string]*wire.Format{govern.OpenAI: wire.OpenAIChat, govern.Anthropic: wire.AnthropicMessages}

// recorded is the way to an upstream, heard by a recorder.
func recorded(tapes *cassette.Recorder, up govern.Upstream) http.RoundTripper {
	next := up.Transport
	if next == nil {
		next = dial.Transport(dial.Options{Allow: []string{up.BaseURL}})
	}
	return tapes.Upstream(cassette.Upstream{Name: up.Name, Format: formats[up.Protocol], BaseURL: up.BaseURL, Next: next})
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
		g, err := match.Compile(selected, match.Options{Name: name, Key: key, Verdict: guard.Redact})
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

// fingerprintKey reads the key beside the record, or makes it.
func fingerprintKey(dir string) ([]byte, error) {
	name := filepath.Join(dir, "fingerprint.key")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, 32)
		rand.Read(key)
		// Made under another name and linked: of two processes that start
		// together, both end with the key of the first.
		tmp, err := os.CreateTemp(dir, ".key-*")
		if err != nil {
			return nil, err
		}
		defer os.Remove(tmp.Name())
		if _, err := tmp.WriteString(hex.EncodeToString(key) + "\n"); err != nil {
			return nil, errors.Join(err, tmp.Close())
		}
		if err := errors.Join(tmp.Sync(), tmp.Close()); err != nil {
			return nil, err
		}
		if err := os.Link(tmp.Name(), name); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		text, err = os.ReadFile(name)
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != 32 {
		return nil, fmt.Errorf("%s is not a key of 64 hexadecimal digits", name)
	}
	return key, nil
}
