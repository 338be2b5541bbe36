package govern_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/budget"
)

// A key is held to its rate, whatever others do; who is too fast is told when to
// come again.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openSpending(t, budget.NewMemory(nil), budget.Limit{}, says(200, "application/json", chatBody("hello")))
		ask := func(who govern.Caller) (int, string, string) {
			resp, err := s.door.RoundTrip(ask(govern.WithCaller(t.Context(), who), t, chat, "hi", false))
			if err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, resp.Header.Get("Retry-After") + " " + resp.Header.Get("X-Should-Retry"), body(t, resp)
		}
		fast := govern.Caller{Key: "k1", RequestsPerMinute: 2, TokensPerMinute: 1000}
		for i, want := range []int{200, 200, 429} {
			status, retry, said := ask(fast)
			if status != want || want == 429 && (retry != "30 true" || !strings.Contains(said, `"code":"rate_limit_exceeded"`) || !strings.Contains(said, `"rule":"key k1","reason":"key k1 may use 2 requests a minute: ask again in 30s"`)) {
				t.Errorf("request %d: status %d, %q: %s", i+1, status, retry, said)
			}
		}
		if status, _, _ := ask(govern.Caller{Key: "k2"}); status != 200 {
			t.Errorf("another key: status %d", status)
		}
		time.Sleep(30 * time.Second)
		if status, _, _ := ask(fast); status != 200 {
			t.Errorf("later: status %d", status)
		}
		if status, retry, said := ask(govern.Caller{Key: "k3", TokensPerMinute: 100}); status != 429 || retry != " false" || !strings.Contains(said, "asks for more at once") {
			t.Errorf("more than a minute's: status %d, %q: %s", status, retry, said)
		}
		// What was reserved and not used is given back: of 118 tokens 16.
		for i := range 3 {
			if status, _, said := ask(govern.Caller{Key: "k4", TokensPerMinute: 150}); status != 200 {
				t.Errorf("request %d: status %d: %s", i+1, status, said)
			}
		}
	})
}

// TestRateOfLabels holds all that bears a label to its rate, whatever the key.
func TestRateOfLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door, err := govern.Open(govern.Config{
			Upstreams: []govern.Upstream{{Name: "u", Protocol: govern.OpenAI, BaseURL: "http://u.invalid", Transport: says(200, "application/json", chatBody("hello"))}},
			Profiles:  []govern.Profile{{Name: "p", Upstreams: []string{"u"}, Models: []string{"*"}}},
			Record:    (&records{}).add,
			Rates:     []govern.Rate{{Kind: "team", Name: "*", Requests: 1}, {Kind: "team", Name: "a", Requests: 2}, {Kind: "key", Name: "*", Requests: 3}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer door.Close()
		for i, c := range []struct {
			who    govern.Caller
			status int
			rule   string
		}{
			{govern.Caller{Key: "k1", Team: "a"}, 200, ""},
			{govern.Caller{Key: "k2", Team: "a"}, 200, ""},
			{govern.Caller{Key: "k3", Team: "a"}, 429, "team a"},
			{govern.Caller{Key: "k3", Team: "b"}, 200, ""},
			{govern.Caller{Key: "k4", Team: "b"}, 429, "team b"},
			{govern.Caller{Key: "k4"}, 200, ""},
			{govern.Caller{Key: "k4"}, 200, ""},
			{govern.Caller{Key: "k4"}, 200, ""},
			{govern.Caller{Key: "k4"}, 429, "each key: k4"},
			{govern.Caller{}, 200, ""},
		} {
			resp, err := door.RoundTrip(ask(govern.WithCaller(t.Context(), c.who), t, chat, "hi", false))
			if err != nil {
				t.Fatal(err)
			}
			if said := body(t, resp); resp.StatusCode != c.status || !strings.Contains(said, c.rule) {
				t.Errorf("request %d: status %d, want %d: %s", i+1, resp.StatusCode, c.status, said)
			}
		}
	})
}
