package keep_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/keep"
	"github.com/stoplog/stoplog/internal/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRing(t *testing.T) *seal.Ring {
	t.Helper()
	ring, err := seal.Parse([]byte(seal.NewKey()))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func openStore(t *testing.T, path string, ring *seal.Ring) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Seal: ring})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// secretOf is a text that the rules take for a token.
func secretOf(n int) string { return fmt.Sprintf("ghp_Zk3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG%04d", 1000+n*7) }

// A value has one placeholder in all processes that have the journal open, however
// many requests of its conversation come at once; it is still there afterwards.
func TestValues(t *testing.T) {
	path, ring := filepath.Join(t.TempDir(), "stoplog.db"), newRing(t)
	var doors []*govern.Transport
	var mu sync.Mutex
	names := map[string]string{} // by value, as the provider saw them
	for range 2 {
		doors = append(doors, openDoor(t, keep.Values{Store: openStore(t, path, ring), Tenant: journal.DefaultTenant}, func(body string) {
			mu.Lock()
			defer mu.Unlock()
			value, name, _ := strings.Cut(said(body), " ")
			if before, ok := names[value]; ok && before != name {
				t.Errorf("value %s is %s and %s", value, before, name)
			}
			names[value] = name
		}))
	}
	const values, times = 8, 4
	var wait sync.WaitGroup
	for n := range values * times {
		wait.Add(1)
		go func() {
			defer wait.Done()
			text := fmt.Sprintf("%d %s", n%values, secretOf(n%values))
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://x.invalid/v1/chat/completions", strings.NewReader(
				`{"model":"m","messages":[{"role":"user","content":"begin"},{"role":"user","content":"`+text+`"}]}`))
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := doors[n%2].RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), secretOf(n%values)) {
				t.Errorf("the answer is %s (%v), want the value back", body, err)
			}
		}()
	}
	wait.Wait()
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	if len(seen) != values {
		t.Errorf("%d values have the placeholders %v", values, names)
	}
}

// said is the last message of a request.
func said(body string) string {
	i := strings.LastIndex(body, `"content":"`) + len(`"content":"`)
	return body[i : i+strings.IndexByte(body[i:], '"')]
}

// openDoor makes a door whose model says what it was told.
func openDoor(t *testing.T, values govern.Values, sent func(string)) *govern.Transport {
	t.Helper()
	selected, err := rules.Select("secrets")
	if err != nil {
		t.Fatal(err)
	}
	g, err := match.Compile(selected, match.Options{Name: "secrets", Key: []byte("key"), Verdict: guard.Redact})
	if err != nil {
		t.Fatal(err)
	}
	members := []guard.Member{{Guard: g}}
	door, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://o.invalid/v1", Transport: echo(sent)}},
		Profiles: []govern.Profile{{Name: "p", Upstreams: []string{"o"}, Models: []string{"m"},
			Input: members, Output: members, Reversible: []string{"secrets"}}},
		Record: func(...govern.Record) error { return nil }, Values: values,
	})
	if err != nil {
		t.Fatal(err)
	}
	return door
}

type echo func(string)

func (e echo) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	e(string(body))
	answer := fmt.Sprintf(`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, said(string(body)))
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// Without a key nothing is kept, and it says how to make one; with another key
// nothing is read; a value that was moved is not taken for one.
func TestValuesAreSealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	plain := keep.Values{Store: openStore(t, path, nil), Tenant: journal.DefaultTenant}
	if err := plain.Add(t.Context(), "c", map[string]string{"[EMAIL_1]": "x"}); !errors.Is(err, seal.ErrNoKey) {
		t.Errorf("kept without a key: %v", err)
	}
	v := keep.Values{Store: openStore(t, path, newRing(t)), Tenant: journal.DefaultTenant}
	if err := v.Add(t.Context(), "c", map[string]string{"[EMAIL_1]": "ann", "[EMAIL_2]": "bea"}); err != nil {
		t.Fatal(err)
	}
	if err := v.Add(t.Context(), "c", map[string]string{"[EMAIL_3]": "carl", "[EMAIL_2]": "dora"}); !errors.Is(err, govern.ErrTaken) {
		t.Errorf("a placeholder was taken twice: %v", err)
	}
	got, err := v.Values(t.Context(), "c")
	if err != nil || len(got) != 2 || got["[EMAIL_1]"] != "ann" || got["[EMAIL_2]"] != "bea" {
		t.Errorf("kept %v, %v", got, err)
	}
	if got, err := v.Values(t.Context(), "d"); err != nil || len(got) != 0 {
		t.Errorf("another conversation has %v, %v", got, err)
	}
	other := keep.Values{Store: openStore(t, path, newRing(t)), Tenant: journal.DefaultTenant}
	if got, err := other.Values(t.Context(), "c"); !errors.Is(err, journal.ErrSealed) {
		t.Errorf("under another key: %v, %v", got, err)
	}
}
