package govern_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/govern"
)

// An answerer answers each call with the next status of its script; 0 is a
// connection that fails, and the last stands for all that follow.
type answerer struct {
	script []int
	header http.Header
	asked  []*http.Request
}

func (a *answerer) RoundTrip(req *http.Request) (*http.Response, error) {
	status := a.script[min(len(a.asked), len(a.script)-1)]
	a.asked = append(a.asked, req)
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	body := chatBody("hello")
	if status >= 400 {
		body = `{"error":{"message":"no","type":"server_error"}}`
	}
	resp := response(status, "application/json", strings.NewReader(body))
	for name, values := range a.header {
		resp.Header[name] = values
	}
	return resp, nil
}

// between opens a door over upstreams of openai, asked in this order.
func between(t *testing.T, record func(...govern.Record) error, ups ...govern.Upstream) *govern.Transport {
	t.Helper()
	p := govern.Profile{Name: "p", Models: []string{"*"}}
	for i := range ups {
		if ups[i].BaseURL == "" {
			ups[i].BaseURL = "http://" + ups[i].Name + ".invalid/v1"
		}
		ups[i].Protocol = govern.OpenAI
		p.Upstreams = append(p.Upstreams, ups[i].Name)
	}
	door, err := govern.Open(govern.Config{Upstreams: ups, Profiles: []govern.Profile{p}, Record: record})
	if err != nil {
		t.Fatal(err)
	}
	return door
}

// TestRetries calls again what failed in a way that may pass, as often as it may
// and as late as the upstream asks, before the first byte of an answer.
func TestRetries(t *testing.T) {
	for name, c := range map[string]struct {
		script  []int
		header  http.Header // of the answers
		caller  http.Header
		ctx     func(context.Context) context.Context
		asked   int
		status  int           // 0: an error
		atLeast time.Duration // waited
		atMost  time.Duration
	}{
		"answers at once":            {script: []int{200}, asked: 1, status: 200},
		"fails once":                 {script: []int{503, 200}, asked: 2, status: 200, atLeast: 375 * time.Millisecond, atMost: 500 * time.Millisecond},
		"is not there once":          {script: []int{0, 200}, asked: 2, status: 200, atLeast: 375 * time.Millisecond, atMost: 500 * time.Millisecond},
		"fails always":               {script: []int{500}, asked: 3, status: 500, atLeast: 1125 * time.Millisecond, atMost: 1500 * time.Millisecond},
		"is never there":             {script: []int{0}, asked: 3, atLeast: 1125 * time.Millisecond, atMost: 1500 * time.Millisecond},
		"refuses":                    {script: []int{400}, asked: 1, status: 400},
		"asks for patience":          {script: []int{429, 200}, header: http.Header{"Retry-After": {"7"}}, asked: 2, status: 200, atLeast: 7 * time.Second, atMost: 7 * time.Second},
		"asks for it finely":         {script: []int{429, 200}, header: http.Header{"Retry-After-Ms": {"20"}}, asked: 2, status: 200, atLeast: 20 * time.Millisecond, atMost: 20 * time.Millisecond},
		"asks for too much":          {script: []int{429}, header: http.Header{"Retry-After": {"31"}}, asked: 1, status: 429},
		"an SDK that tries again":    {script: []int{503}, caller: http.Header{"X-Stainless-Retry-Count": {"0"}}, asked: 1, status: 503},
		"a run that tries again":     {script: []int{503}, ctx: func(ctx context.Context) context.Context { return govern.WithParent(ctx, "run_1") }, asked: 1, status: 503},
		"an upstream that overloads": {script: []int{529, 529, 200}, asked: 3, status: 200, atLeast: 1125 * time.Millisecond, atMost: 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answerer{script: c.script, header: c.header}
				door := between(t, (&records{}).add, govern.Upstream{Name: "o", Transport: a, Retries: 2})
				ctx := t.Context()
				if c.ctx != nil {
					ctx = c.ctx(ctx)
				}
				req := ask(ctx, t, chat, "hi", false)
				for name, values := range c.caller {
					req.Header[name] = values
				}
				began := time.Now()
				resp, err := door.RoundTrip(req)
				status := 0
				if err == nil {
					status = resp.StatusCode
					resp.Body.Close()
				} else if failed := (*govern.UpstreamError)(nil); !errors.As(err, &failed) {
					t.Errorf("got the error %v, want an UpstreamError", err)
				}
				waited := time.Since(began)
				if len(a.asked) != c.asked || status != c.status || waited < c.atLeast || waited > c.atMost {
					t.Errorf("asked %d times, status %d after %s; want %d, %d, between %s and %s", len(a.asked), status, waited, c.asked, c.status, c.atLeast, c.atMost)
				}
			})
		})
	}
}

// TestRetryIsGivenUp ends the wait when who asked has gone.
func TestRetryIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, kept := &answerer{script: []int{503}}, &records{}
		door := between(t, kept.add, govern.Upstream{Name: "o", Transport: a, Retries: 9})
		ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer leave()
		if _, err := door.RoundTrip(ask(ctx, t, chat, "hi", false)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got the error %v", err)
		}
		if s := kept.settled(); len(s) != 1 || s[0].Status != "cancelled" || len(a.asked) != 1 {
			t.Errorf("asked %d times, settled %+v", len(a.asked), s)
		}
	})
}

// TestFallback asks the next upstream when one fails, and says who answered.
func TestFallback(t *testing.T) {
	for name, c := range map[string]struct {
		first, second int
		status        int
		answered      string // as recorded: empty for the first
	}{
		"the first answers":   {200, 200, 200, ""},
		"the first is full":   {429, 200, 200, "two"},
		"the first is gone":   {0, 200, 200, "two"},
		"the first refuses":   {401, 200, 401, ""},
		"the second fails":    {503, 500, 500, "two"},
		"neither is there":    {0, 0, 0, "two"},
		"the second is gone":  {529, 0, 0, "two"},
		"the first times out": {504, 200, 200, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := &records{}
			door := between(t, kept.add,
				govern.Upstream{Name: "one", Transport: &answerer{script: []int{c.first}}},
				govern.Upstream{Name: "two", Transport: &answerer{script: []int{c.second}}})
			resp, err := door.RoundTrip(ask(t.Context(), t, chat, "hi", false))
			status := 0
			if err == nil {
				status = resp.StatusCode
				resp.Body.Close()
			}
			if s := kept.settled(); status != c.status || len(s) != 1 || s[0].Upstream != c.answered {
				t.Errorf("status %d, settled %+v; want %d from %q", status, s, c.status, c.answered)
			}
		})
	}
}

// TestAddresses pins where a request goes, and under which headers.
func TestAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		up     govern.Upstream
		caller http.Header
		want   string
		header http.Header // of those that are looked at
	}{
		"openai": {
			up:   govern.Upstream{BaseURL: "http://o.invalid/v1/", Key: "k"},
			want: "http://o.invalid/v1/chat/completions", header: http.Header{"Authorization": {"Bearer k"}},
		},
		"a caller's own key": {
			up: govern.Upstream{}, caller: http.Header{"Authorization": {"Bearer mine"}, "X-Other": {"stays behind"}},
			want: "http://o.invalid/v1/chat/completions", header: http.Header{"Authorization": {"Bearer mine"}},
		},
		"headers of its own": {
			up:     govern.Upstream{Key: "k", Header: http.Header{"X-Team": {"a"}, "Openai-Organization": {"ours"}}},
			caller: http.Header{"Openai-Organization": {"theirs"}},
			want:   "http://o.invalid/v1/chat/completions", header: http.Header{"Authorization": {"Bearer k"}, "X-Team": {"a"}, "Openai-Organization": {"ours"}},
		},
		"azure": {
			up:   govern.Upstream{BaseURL: "https://us.azure.invalid", Key: "k", Azure: &govern.Azure{APIVersion: "2024-10-21", Deployments: map[string]string{"m": "my m/1"}}},
			want: "https://us.azure.invalid/openai/deployments/my%20m%2F1/chat/completions?api-version=2024-10-21", header: http.Header{"Api-Key": {"k"}},
		},
		"azure, the model's own name, the caller's key": {
			up:     govern.Upstream{BaseURL: "https://us.azure.invalid", Azure: &govern.Azure{APIVersion: "2024-10-21"}},
			caller: http.Header{"Api-Key": {"mine"}},
			want:   "https://us.azure.invalid/openai/deployments/m/chat/completions?api-version=2024-10-21", header: http.Header{"Api-Key": {"mine"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answerer{script: []int{200}}
			c.up.Name, c.up.Transport = "o", a
			req := ask(t.Context(), t, chat, "hi", false)
			for name, values := range c.caller {
				req.Header[name] = values
			}
			resp, err := between(t, (&records{}).add, c.up).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			got := http.Header{}
			for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Team", "X-Other", "Openai-Organization"} {
				if v := a.asked[0].Header.Values(name); len(v) > 0 {
					got[name] = v
				}
			}
			if url := a.asked[0].URL.String(); url != c.want {
				t.Errorf("asked %s, want %s", url, c.want)
			}
			if diff := cmp.Diff(c.header, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDialRefuses names what is wrong, and no credentials.
func TestDialRefuses(t *testing.T) {
	for want, d := range map[string]govern.Dial{
		"proxy":       {Proxy: "://u:pw@"},
		"authorities": {RootCAs: []byte("no PEM")},
	} {
		_, err := govern.Open(govern.Config{
			Upstreams: []govern.Upstream{{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://o.invalid", Dial: d}},
			Profiles:  []govern.Profile{{Name: "p", Upstreams: []string{"o"}}}, RecordFile: t.TempDir() + "/r",
		})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("got the error %v, want one about the %s", err, want)
		}
	}
}
