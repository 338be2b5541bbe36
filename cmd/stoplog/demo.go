package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stoplog/stoplog/examples"
	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/cassette"
	"github.com/stoplog/stoplog/internal/dial"
	"github.com/stoplog/stoplog/internal/gateway"
)

type demoCommand struct {
	Cassette []string `placeholder:"FILE" sep:"none" help:"Play this cassette instead of those that the program carries; may be given again."`
	Fast     bool     `help:"Play without the pauses of a real stream."`
	Yes      bool     `help:"Approve the agent's command without asking."`
	JSON     bool     `help:"Give the result as JSON, at the end."`
}

func (*demoCommand) Help() string {
	return `Shows what a gateway of this program does, with no key and no network: it plays a cassette (a written model's answer) on loopback, asks it through the gateway with a plain HTTP client, and prints what that client gets as it arrives.

1. An answer with secrets in it, streamed. Where text was held back before a replacement the number of bytes stands between bars.
2. The same question unstreamed, and whether both are the same words.
3. An answer that a rule denies, streamed: it ends before the span.
4. The record of all three.
5. An agent, whose model must not be sent the secret that it reads, and which asks before it runs a command: at a terminal you are asked, elsewhere the answer is yes.
6. The agent going round in circles, until it is stopped and says so.
7. The journal of its first turn, and whether the chains are whole.

The cassettes are asked for the models demo-secrets, demo-denied (streamed and not) and demo-agent in OpenAI's format; a cassette of your own must have the first two, and the agent is left out.

Examples:

    stoplog demo
    stoplog demo --fast --json | jq .equal

Exit codes: 0 all of it held, 1 it did not.`
}

// demo is what the command finds out; its JSON is the command's.
type demo struct {
	Streamed   answer          `json:"streamed"`
	Unstreamed answer          `json:"unstreamed"`
	Equal      bool            `json:"equal"`
	Held       held            `json:"held"`
	Denied     answer          `json:"denied"`
	Records    []govern.Record `json:"records"`
	Agent      *agentDemo      `json:"agent"` // null where the cassette has none
}

// held is how much of what the model had said the client had not got, whenever
// something came to it, and the longest span that was replaced.
type held struct {
	Most     int64   `json:"most_bytes"`
	Mean     float64 `json:"mean_bytes"`
	Replaced int64   `json:"replaced_bytes"`
}

func (c *demoCommand) Run(w *world) error {
	stage, err := c.stage()
	if err != nil {
		return failf(exitError, "%w", err)
	}
	defer stage.close()
	p := newPrinter(w, c.JSON)
	d := demo{}
	ctx := context.Background()

	p.heading("1  A model's answer, streamed through the gateway at %s.", stage.url)
	if d.Streamed, err = stage.ask(ctx, "demo-secrets", "default", true, p.arrived); err != nil {
		return failf(exitError, "ask for a stream: %w", err)
	}
	d.Held = stage.held()
	p.ended(d.Streamed)

	p.heading("2  The same, unstreamed.")
	if d.Unstreamed, err = stage.ask(ctx, "demo-secrets", "default", false, nil); err != nil {
		return failf(exitError, "ask for an answer: %w", err)
	}
	p.whole(d.Unstreamed)
	d.Equal = d.Streamed.same(d.Unstreamed)
	p.compare(d)

	p.heading("3  An answer that gives away a person's number, where a rule denies that.")
	if d.Denied, err = stage.ask(ctx, "demo-denied", "strict", true, p.arrived); err != nil {
		return failf(exitError, "ask for what is denied: %w", err)
	}
	p.ended(d.Denied)

	d.Records = stage.recorded()
	p.records(d.Records)
	if stage.hasAgent {
		a, err := c.agents(ctx, w, stage, p)
		if err != nil {
			return failf(exitError, "show an agent: %w", err)
		}
		d.Agent = &a
	}
	p.next()
	if c.JSON {
		if err := newEncoder(w.stdout).Encode(d); err != nil {
			return err
		}
	}
	return d.judge(p.err)
}

// judge says whether the demo showed what it says it shows.
func (d demo) judge(err error) error {
	switch {
	case err != nil:
		return err
	case !d.Equal:
		return failf(exitError, "the streamed and the unstreamed answer differ")
	case d.Denied.status() != "guardrail_blocked":
		return failf(exitError, "the answer that should have been denied was not: its status is %q", d.Denied.status())
	case d.Agent != nil:
		return d.Agent.judge()
	}
	return nil
}

// stage is a gateway over a cassette, on a loopback address, and what it
// recorded.
type stage struct {
	url    string
	client client
	door   *govern.Transport
	server *http.Server
	ended  chan error
	tap    *tap
	meter  meter

	hasAgent bool // the cassettes have an agent's model

	mu      sync.Mutex
	records []govern.Record
}

// client is a plain HTTP client.
type client interface {
	Do(*http.Request) (*http.Response, error)
	CloseIdleConnections()
}

func (c *demoCommand) stage() (*stage, error) {
	played, err := c.open()
	if err != nil {
		return nil, err
	}
	if !c.Fast {
		played.Pace = cassette.Real
	}
	s := &stage{client: dial.Loopback(), ended: make(chan error, 1), tap: &tap{door: played}, hasAgent: len(c.Cassette) == 0}
	if s.door, err = govern.Open(s.config()); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	s.url = "http://" + listener.Addr().String() + "/openai/v1"
	s.server = &http.Server{
		Handler:           gateway.New(s.door, gateway.Mount{Protocol: govern.OpenAI, Profiles: []string{"default", "strict"}}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() { s.ended <- s.server.Serve(listener) }()
	return s, nil
}

// open reads the cassettes that were named, or those that the program carries.
func (c *demoCommand) open() (*cassette.Cassette, error) {
	if len(c.Cassette) > 0 {
		return cassette.Open(c.Cassette...)
	}
	files, err := fs.Glob(examples.Cassettes, "cassettes/*.cassette")
	if err != nil {
		return nil, err
	}
	return cassette.OpenFS(examples.Cassettes, append(files, "agent.cassette")...)
}

// config is the built-in profile, and one that denies what is found of people.
func (s *stage) config() govern.Config {
	key := make([]byte, 32)
	rand.Read(key)
	secrets := guard.Member{Guard: demoGuard("secrets", key, guard.Redact, "secrets", "credentials")}
	pii := guard.Member{Guard: demoGuard("pii", key, guard.Redact, "pii"), Mode: guard.Shadow}
	people := guard.Member{Guard: demoGuard("people", key, guard.Deny, "us-ssn", "credit-card", "iban")}
	profile := func(name string, output ...guard.Member) govern.Profile {
		return govern.Profile{Name: name, Upstreams: []string{"demo"}, Models: []string{"*"}, Output: output}
	}
	return govern.Config{
		Upstreams: []govern.Upstream{{Name: "demo", Protocol: govern.OpenAI, BaseURL: "http://cassette.invalid/v1", Transport: s.tap}},
		Profiles:  []govern.Profile{profile("default", secrets, pii), profile("strict", secrets, people)},
		Record: func(rs ...govern.Record) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.records = append(s.records, rs...)
			return nil
		},
	}
}

// demoGuard is a guard of rules that the program has.
func demoGuard(name string, key []byte, v guard.Verdict, packs ...string) guard.Guard {
	selected, err := rules.Select(packs...)
	if err != nil {
		panic(err) // the packs are this program's own
	}
	g, err := match.Compile(selected, match.Options{Name: name, Evasions: match.Evasions, Key: key, Verdict: v})
	if err != nil {
		panic(err)
	}
	return g
}

func (s *stage) recorded() []govern.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records
}

func (s *stage) close() {
	s.server.Close()
	<-s.ended
	s.client.CloseIdleConnections()
	s.door.Close()
}

// ask asks the gateway as any client would. got is called for each piece of a
// streamed answer, with the lengths of the spans that were replaced in it.
func (s *stage) ask(ctx context.Context, model, profile string, stream bool, got func(text string, replaced []int64)) (answer, error) {
	s.meter = meter{}
	s.tap.reset()
	body, err := json.Marshal(map[string]any{
		"model": model, "stream": stream,
		"messages": []map[string]string{{"role": "user", "content": "What do I need to know?"}},
	})
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Stoplog-Profile", profile)
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{released: func(text string) {
		replaced := s.meter.take(text, s.tap.said(), s.recorded())
		if got != nil {
			got(text, replaced)
		}
	}}
	err = a.read(resp)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(fmt.Sprintf("the gateway answered %d: %s", resp.StatusCode, a.Error)))
	}
	return a, err
}

func (s *stage) held() held { return s.meter.held() }
