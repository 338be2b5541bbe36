package gateway_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/auth"
	"github.com/stoplog/stoplog/internal/gateway"
)

// ring is a store of keys in memory, which may fail.
type ring struct {
	keys []auth.Key
	err  error
}

func (r *ring) AuthKeys(context.Context) ([]auth.Key, error) { return slices.Clone(r.keys), r.err }

func (r *ring) AddAuthKey(_ context.Context, k auth.Key) error {
	r.keys = append(r.keys, k)
	return nil
}

func (*ring) RevokeAuthKey(context.Context, string, time.Time, string) (bool, error) {
	return false, nil
}

func (r *ring) make(t *testing.T, k auth.Key) string {
	t.Helper()
	_, token, err := auth.Create(t.Context(), r, sha256.Sum256, time.Now(), k)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestCallers lets in who shows a key of a fitting role, under a profile that the
// key may use, records whose it is, and shows the key to no upstream.
func TestCallers(t *testing.T) {
	keys := &ring{}
	app := keys.make(t, auth.Key{Name: "ci", Role: auth.App, Labels: auth.Labels{Team: "platform", App: "ci", User: "ann"}})
	strict := keys.make(t, auth.Key{Name: "strict", Role: auth.App, Profiles: []string{"hidden", "input", "default"}})
	nowhere := keys.make(t, auth.Key{Name: "nowhere", Role: auth.App, Profiles: []string{"hidden"}})
	viewer := keys.make(t, auth.Key{Name: "eve", Role: auth.Viewer})
	for _, protocol := range protocols {
		for name, c := range map[string]struct {
			headers []string
			profile string // asked for
			status  int
			code    string // or what the upstream gets:
			passed  string
			judged  string // under which profile
		}{
			"a key":                         {headers: []string{"Authorization", "Bearer " + app}, status: 200, judged: "default"},
			"in the other header":           {headers: []string{"X-Api-Key", app}, status: 200, judged: "default"},
			"beside a provider's":           {headers: []string{"Authorization", "Bearer sk-theirs", "Stoplog-Key", app}, status: 200, passed: "Bearer sk-theirs", judged: "default"},
			"none":                          {headers: []string{"Authorization", "Bearer sk-theirs"}, status: 401, code: "invalid_api_key"},
			"a wrong one":                   {headers: []string{"X-Api-Key", app[:len(app)-4] + "0000"}, status: 401, code: "invalid_api_key"},
			"of a viewer":                   {headers: []string{"X-Api-Key", viewer}, status: 403, code: "role_not_allowed"},
			"the key's first profile":       {headers: []string{"X-Api-Key", strict}, status: 200, judged: "input"},
			"another of the key's profiles": {headers: []string{"X-Api-Key", strict}, profile: "default", status: 200, judged: "default"},
			"a profile no mount names":      {headers: []string{"X-Api-Key", strict}, profile: "hidden", status: 400, code: "unknown_profile"},
			"no profile of this mount":      {headers: []string{"X-Api-Key", nowhere}, status: 403, code: "profile_not_allowed"},
		} {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				w := openWithKeys(t, &auth.Ring{Store: keys, Digest: sha256.Sum256, Required: true})
				w.answers(protocol, "hello")
				headers := c.headers
				if c.profile != "" {
					headers = append(headers, "Stoplog-Profile", c.profile)
				}
				a := w.ask("POST", path(protocol), question(protocol, false), headers...)
				if a.status != c.status || c.code != "" && !strings.Contains(string(a.body), `"`+c.code+`"`) && protocol == govern.OpenAI {
					t.Fatalf("got %d %s, want %d %s", a.status, a.body, c.status, c.code)
				}
				if c.status != 200 {
					if len(w.upstream.requests()) > 0 || a.header.Get("X-Should-Retry") != "false" {
						t.Errorf("the upstream was asked %d times; header %v", len(w.upstream.requests()), a.header)
					}
					return
				}
				sent := w.upstream.requests()[0].Header
				for name, values := range sent {
					if strings.Contains(strings.Join(values, " "), "sl_") {
						t.Errorf("the upstream is shown the key in %s", name)
					}
				}
				if got := sent.Get("Authorization") + sent.Get("X-Api-Key"); got != c.passed {
					t.Errorf("the upstream gets the key %q, want %q", got, c.passed)
				}
				started := w.records.started(t, a.run())
				if started.Profile != c.judged || started.Caller == nil || started.Caller.Key == "" {
					t.Errorf("recorded is %+v, want profile %s and a caller", started, c.judged)
				}
			})
		}
	}
	w := openWithKeys(t, &auth.Ring{Store: keys, Digest: sha256.Sum256})
	w.answers(govern.OpenAI, "hello")
	a := w.ask("POST", path(govern.OpenAI), question(govern.OpenAI, false), "X-Api-Key", app)
	want := &govern.Caller{Key: keys.keys[0].ID, Name: "ci", Team: "platform", App: "ci", User: "ann"}
	if diff := cmp.Diff(want, w.records.started(t, a.run()).Caller); diff != "" {
		t.Errorf("the caller as recorded:\n%s", diff)
	}
	if a := w.ask("POST", path(govern.OpenAI), question(govern.OpenAI, false)); a.status != 200 || w.records.started(t, a.run()).Caller != nil {
		t.Errorf("without a key where none is required: %d", a.status)
	}
}

// TestUnreadableKeys lets nobody in.
func TestUnreadableKeys(t *testing.T) {
	keys := &ring{}
	token := keys.make(t, auth.Key{Name: "ci", Role: auth.App})
	keys.err = errors.New("no disk")
	w := openWithKeys(t, &auth.Ring{Store: keys, Digest: sha256.Sum256})
	w.answers(govern.OpenAI, "hello")
	if a := w.ask("POST", path(govern.OpenAI), question(govern.OpenAI, false), "X-Api-Key", token); a.status != 503 || len(w.upstream.requests()) > 0 {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

// openWithKeys is open, for callers who are told apart.
func openWithKeys(t *testing.T, keys *auth.Ring) *world {
	t.Helper()
	w := open(t, guard.Redact)
	g := gateway.New(w.door, w.mounts...)
	g.Keys = keys
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	w.url, w.client = server.URL, server.Client()
	return w
}

// started is how a run began, by its record.
func (r *records) started(t testing.TB, run string) govern.Started {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.all {
		if s, ok := rec.Fact.(govern.Started); ok && rec.Run == run {
			return s
		}
	}
	t.Errorf("run %q is not recorded as started", run)
	return govern.Started{}
}
