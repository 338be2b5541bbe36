package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// keyed is a gateway that asks for keys and gives each of their users a budget.
const keyed = `version: 1
store: "sqlite:STORE"
require_keys: true
upstreams:
  openai:    {protocol: openai, cassettes: ["CASSETTES/openai-*.cassette", "CASSETTES/responses-*.cassette"], pace: none, zone: local}
  anthropic: {protocol: anthropic, cassettes: ["CASSETTES/anthropic-*.cassette"], pace: none, zone: local}
profiles:
  default: {extends: builtin, upstream: [openai, anthropic], models: ["*"], reserve_tokens: 16}
gateway: {openai: default, anthropic: default}
budgets:
  users: {poor: {tokens: 3}BUDGETS}
`

// TestKeysAndBudgets has each client ask with a key that is wrong, with one whose
// budget is spent, with one whose budget ends in the midst of an answer, and with
// one that is good for all it asks.
func TestKeysAndBudgets(t *testing.T) {
	var budgets strings.Builder
	for _, c := range clients {
		fmt.Fprintf(&budgets, ", %s: {tokens: 300}", c.name)
	}
	store := filepath.Join(t.TempDir(), "stoplog.db")
	config := withCassettes(t, strings.NewReplacer("STORE", store, "BUDGETS", budgets.String()).Replace(keyed), "cassettes")
	keys := map[string]string{}
	for _, name := range append([]string{"poor", "rich"}, names(clients)...) {
		made := exec.Command(program, "keys", "create", name, "--user", name, "--store", store, "--by", "ann")
		key, err := made.Output()
		if err != nil {
			t.Fatalf("stoplog keys create %s: %v", name, err)
		}
		keys[name] = strings.TrimSpace(string(key))
	}
	g := serve(t, config)
	for _, c := range clients {
		for _, stream := range []bool{false, true} {
			t.Run(c.name+"/wrong key/"+mode(stream), func(t *testing.T) {
				wrong := keys["rich"][:len(keys["rich"])-4] + "0000"
				a, seen := askWith(t, g, c, question{Text: "What does a stoplog do?", Stream: stream, Key: wrong})
				c.fails(t, a, seen, failure{Status: http.StatusUnauthorized, Code: errorCode(c, "invalid_api_key", "authentication_error")})
				if a.Error != nil && a.Error.Kind != "" && a.Error.Kind != "AuthenticationError" {
					t.Errorf("the client throws %s", a.Error.Kind)
				}
				count(t)
			})
			t.Run(c.name+"/spent/"+mode(stream), func(t *testing.T) {
				a, seen := askWith(t, g, c, question{Text: "What does a stoplog do?", Stream: stream, Key: keys["poor"]})
				c.fails(t, a, seen, failure{Status: http.StatusTooManyRequests, Code: errorCode(c, "budget_exceeded", "rate_limit_error")})
				if a.Error != nil && !strings.Contains(a.Error.Message, "the budget of user poor does not allow it") {
					t.Errorf("the client says %q", a.Error.Message)
				}
				count(t)
			})
			t.Run(c.name+"/good/"+mode(stream), func(t *testing.T) {
				a, _ := askWith(t, g, c, question{Text: "What does a stoplog do?", Stream: stream, Key: keys["rich"]})
				c.sees(t, a, answer{Text: scenarios[0].text, Finish: scenarios[0].finish[c.format], Input: 14, Output: 41})
				count(t)
			})
		}
		t.Run(c.name+"/runs out", func(t *testing.T) {
			a, seen := askWith(t, g, c, question{Text: "Tell me about each lock on the way.", Stream: true, Key: keys[c.name], MaxTokens: 16})
			if a.Error != nil || len(seen) != 1 {
				t.Fatalf("asked %d times, the client says %+v", len(seen), a.Error)
			}
			const begin, end = "Lock 1 lifts a boat by 3 feet", "Lock 40 "
			if !strings.HasPrefix(a.Text, begin) || strings.Contains(a.Text, end) {
				t.Errorf("the client sees %q", a.Text)
			}
			if want := map[string]string{"openai": "length", "responses": "max_output_tokens", "anthropic": "max_tokens"}[c.format]; a.Finish != want {
				t.Errorf("it ended with %q, want %q", a.Finish, want)
			}
			if a.Output < 16 || a.Input+a.Output > 400 {
				t.Errorf("the client was told of %d and %d tokens", a.Input, a.Output)
			}
			if !c.own && (a.Policy == nil || a.Policy.Status != "budget_exceeded" || a.Policy.Guard != "budget" || a.Policy.Rule != "user "+c.name) {
				t.Errorf("the client was told %+v", a.Policy)
			}
			count(t)
		})
	}
}

func names(cs []client) (names []string) {
	for _, c := range cs {
		names = append(names, c.name)
	}
	return names
}

// errorCode is what a client gives its user as the error's: OpenAI has codes,
// Anthropic types.
func errorCode(c client, code, kind string) string {
	if c.format == "anthropic" {
		return kind
	}
	return code
}

// fails wants a client to end with an error and to have asked once, if it heeds
// that it was told not to ask again.
func (c client) fails(t *testing.T, got answer, seen []exchange, want failure) {
	t.Helper()
	if got.Error == nil || got.Text != "" || got.Error.Status != want.Status || got.Error.Code != want.Code {
		t.Errorf("the client sees %+v with the error %+v, want %+v", got, got.Error, want)
	}
	for _, e := range seen {
		if e.AnswerHeader.Get("X-Should-Retry") != "false" {
			t.Errorf("the client may ask again: %v", e.AnswerHeader)
		}
	}
	if !c.own && len(seen) != 1 {
		t.Errorf("the client asked %d times", len(seen))
	}
}

// count counts a check that did not fail.
func count(t *testing.T) {
	if !t.Failed() {
		checks.Add(1)
	}
}
