package govern_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/wire"
)

// A dollar for a million tokens of input, ten of output.
var testPrices = budget.Prices{"m": {Model: "m", Rates: budget.Rates{Input: 1e6, CacheRead: 1e6, CacheWrite: 1e6, CacheWrite1h: 1e6, Output: 1e7}}}

// spending is a door whose profile has an envelope.
type spending struct {
	door   *govern.Transport
	purse  *budget.Purse
	ledger budget.Ledger
	log    *records
}

func openSpending(t *testing.T, ledger budget.Ledger, limit budget.Limit, up http.RoundTripper) *spending {
	t.Helper()
	s := &spending{ledger: ledger, log: &records{}}
	var err error
	s.purse, err = budget.Open(t.Context(), ledger, budget.Options{
		Prices: testPrices, Envelopes: []budget.Envelope{{Scope: budget.Scope{Kind: budget.Profile, Name: "p"}, Limit: limit}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.purse.Close(); err != nil {
			t.Error(err)
		}
	})
	m := member(t, guard.Redact)
	s.door, err = govern.Open(govern.Config{
		Upstreams: []govern.Upstream{
			{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://openai.invalid/v1", Transport: up},
			{Name: "a", Protocol: govern.Anthropic, BaseURL: "http://anthropic.invalid", Transport: up},
		},
		Profiles: []govern.Profile{{Name: "p", Upstreams: []string{"o", "a"}, Models: []string{"*"}, Input: []guard.Member{m}, Output: []guard.Member{m}, ReserveTokens: 100}},
		Record:   s.log.add, Purse: s.purse,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// spent closes the purse and says what the profile spent.
func (s *spending) spent(t *testing.T) budget.Debit {
	t.Helper()
	if err := s.purse.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := s.ledger.Accounts(t.Context(), budget.DayOf(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Kind == budget.Profile {
			return a.Spent
		}
	}
	return budget.Debit{}
}

func tokens(n int64) budget.Limit { return budget.Limit{Tokens: budget.AtMost(n)} }

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What a call took is settled from the usage that its provider reports, and stands
// in its record with what it cost.
func TestBudgetIsSettled(t *testing.T) {
	for name, c := range map[string]struct {
		url    string
		stream bool
		up     upstream
	}{
		"openai":                 {chat, false, says(200, "application/json", chatBody("hello"))},
		"openai, streamed":       {chat, true, says(200, "text/event-stream", chatStream("hel", "lo"))},
		"anthropic, streamed":    {messages, true, says(200, "text/event-stream", messageStart()+textDelta("hello")+messageEnd())},
		"openai, and it is long": {chat, true, says(200, "text/event-stream", chatStream(strings.Repeat("hello, ", 400)))},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSpending(t, budget.NewMemory(nil), tokens(10_000), c.up)
			resp, err := s.door.RoundTrip(ask(t.Context(), t, c.url, "hi", c.stream))
			if err != nil {
				t.Fatal(err)
			}
			body(t, resp)
			settled := s.log.settled()
			if len(settled) != 1 || settled[0].Usage != (wire.Usage{Input: 7, Output: 9}) || settled[0].Cost != (budget.Cost{USD: 97_000, Known: true}) {
				t.Errorf("settled %+v", settled)
			}
			if got := s.spent(t); got != (budget.Debit{Amount: budget.Amount{Tokens: 16, USD: 97_000}}) {
				t.Errorf("spent %+v", got)
			}
		})
	}
}

// A call for which there is not enough gets 429 in its protocol, says that asking
// again does not help, and is not made.
func TestBudgetExceededBeforeTheCall(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{chat, `{"error":{"message":"the budget of profile p does not allow it: 118 tokens are needed and 50 of 50 are left (0 spent, 0 reserved)`},
		{messages, `{"type":"error","error":{"type":"rate_limit_error","message":"the budget of profile p does not allow it: 118 tokens`},
	} {
		var calls atomic.Int64
		s := openSpending(t, budget.NewMemory(nil), tokens(50), upstream(func(*http.Request) (*http.Response, error) {
			calls.Add(1)
			return nil, errors.New("asked")
		}))
		resp, err := s.door.RoundTrip(ask(t.Context(), t, c.url, "hi", true))
		if err != nil {
			t.Fatal(err)
		}
		got := body(t, resp)
		if resp.StatusCode != 429 || resp.Header.Get("X-Should-Retry") != "false" || resp.Header.Get("Stoplog-Verdict") != "deny" {
			t.Errorf("status %d, header %v", resp.StatusCode, resp.Header)
		}
		if !strings.HasPrefix(got, c.want) || !strings.Contains(got, `"status":"budget_exceeded"`) {
			t.Errorf("said %s\nwant %s…", got, c.want)
		}
		if c.url == chat && !strings.Contains(got, `"code":"budget_exceeded"`) {
			t.Errorf("said %s, want the code", got)
		}
		if n := calls.Load(); n != 0 {
			t.Errorf("%d calls were made", n)
		}
		if settled := s.log.settled(); len(settled) != 1 || settled[0].Status != "failed" || settled[0].Reason != "budget_exceeded" || settled[0].Usage != (wire.Usage{}) {
			t.Errorf("settled %+v", settled)
		}
		if got := s.spent(t); got != (budget.Debit{}) {
			t.Errorf("spent %+v", got)
		}
	}
}

// Of what a request says of its length as much is reserved; what it does not say
// is what the profile says.
func TestBudgetReservesWhatIsAsked(t *testing.T) {
	s := openSpending(t, budget.NewMemory(nil), tokens(1000), says(200, "application/json", chatBody("hello")))
	for request, fits := range map[string]bool{
		`{"model":"m","messages":[],"max_tokens":900}`:                              true,
		`{"model":"m","messages":[],"max_tokens":990}`:                              false,
		`{"model":"m","messages":[],"max_completion_tokens":9223372036854775807}`:   false,
		`{"model":"m","messages":[],"max_completion_tokens":10,"max_tokens":990}`:   false,
		`{"model":"m","messages":[],"n":9}`:                                         true,
		`{"model":"m","messages":[],"n":10}`:                                        false,
		`{"model":"m","messages":[],"x":"` + strings.Repeat("four", 1000) + `"}`:    false,
		`{"model":"m","messages":[],"max_tokens":0,"max_completion_tokens":"many"}`: true,
	} {
		req := ask(t.Context(), t, chat, "", false)
		req.Body = io.NopCloser(strings.NewReader(request))
		resp, err := s.door.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, resp); (resp.StatusCode == 200) != fits {
			t.Errorf("%.80s: status %d\n%s", request, resp.StatusCode, got)
		}
	}
}

// An answer that outruns the budget is ended as one that came to its length, after
// what was held is decided, with its usage; the upstream is let go.
func TestBudgetRunsOutMidStream(t *testing.T) {
	for name, c := range map[string]struct {
		url, first, again, finish, last string
	}{
		"openai":    {chat, "", chunk(strings.Repeat("word ", 40)), `"finish_reason":"length"`, "data: [DONE]"},
		"anthropic": {messages, messageStart(), textDelta(strings.Repeat("word ", 40)), `"stop_reason":"max_tokens"`, `data: {"type":"message_stop"}`},
	} {
		t.Run(name, func(t *testing.T) {
			released := make(chan struct{})
			r, w := io.Pipe()
			s := openSpending(t, budget.NewMemory(nil), tokens(300), upstream(func(*http.Request) (*http.Response, error) {
				return response(200, "text/event-stream", &closing{r, released}), nil
			}))
			go func() {
				_, err := io.WriteString(w, c.first)
				for n := 0; err == nil && n < 1000; n++ {
					_, err = io.WriteString(w, c.again)
				}
				w.Close()
			}()
			resp, err := s.door.RoundTrip(ask(t.Context(), t, c.url, "hi", true))
			if err != nil {
				t.Fatal(err)
			}
			got := body(t, resp)
			<-released
			if !strings.Contains(got, c.finish) || !strings.HasSuffix(strings.TrimSpace(got), c.last) || !strings.Contains(got, `"status":"budget_exceeded","guard":"budget","rule":"profile p","reason":"the budget of profile p`) {
				t.Errorf("said …%s", got[max(0, len(got)-900):])
			}
			settled := s.log.settled()
			if len(settled) != 1 || settled[0].Status != "failed" || settled[0].Reason != "budget_exceeded" || !settled[0].Usage.Estimated {
				t.Errorf("settled %+v", settled)
			}
			if got := s.spent(t); got.Tokens < 200 || got.Tokens > 350 || got.Estimated != got.Amount {
				t.Errorf("spent %+v, want about 300, estimated", got)
			}
		})
	}
}

type closing struct {
	*io.PipeReader
	closed chan struct{}
}

func (c *closing) Close() error {
	defer close(c.closed)
	return c.PipeReader.Close()
}

// Whichever way a call ends, it is settled once: what was not reported is an
// estimate, what was not asked costs nothing.
func TestBudgetIsSettledOnEveryExit(t *testing.T) {
	started := "data: " // of a frame
	for name, c := range map[string]struct {
		up     upstream
		stream bool
		leave  bool // the caller leaves after the first byte
		want   budget.Debit
	}{
		"the caller hangs up": {up: func(req *http.Request) (*http.Response, error) {
			return response(200, "text/event-stream", io.MultiReader(strings.NewReader(chunk("four and twenty blackbirds")), &endless{req.Context()})), nil
		}, stream: true, leave: true, want: estimated(18 + 7)},
		"the upstream breaks off": {up: says(200, "text/event-stream", chunk("four and twenty blackbirds")+started), stream: true, want: estimated(18 + 7)},
		"no upstream is there":    {up: func(*http.Request) (*http.Response, error) { return nil, errors.New("gone") }},
		"the upstream refuses":    {up: says(400, "application/json", `{"error":{"message":"no","type":"invalid_request_error"}}`), want: budget.Debit{}},
		"the upstream is busy":    {up: says(529, "text/html", "busy"), want: budget.Debit{}},
		"the answer is no JSON":   {up: says(200, "application/json", "<html>"), want: estimated(18)},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSpending(t, budget.NewMemory(nil), tokens(10_000), c.up)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := s.door.RoundTrip(ask(ctx, t, chat, "hi", c.stream))
			if err == nil {
				if c.leave {
					if _, err := resp.Body.Read(make([]byte, 512)); err != nil {
						t.Fatal(err)
					}
					cancel()
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if got := s.spent(t); got != c.want {
				t.Errorf("spent %+v, want %+v", got, c.want)
			}
			if n := len(s.log.settled()); n != 1 {
				t.Errorf("settled %d times", n)
			}
		})
	}
}

// estimated is what a usage of input and nothing, or of output too, comes to.
func estimated(n int64) budget.Debit {
	usd := map[int64]budget.USD{18: 18_000, 18 + 7: 88_000}[n]
	a := budget.Amount{Tokens: n, USD: usd}
	return budget.Debit{Amount: a, Estimated: a}
}

// endless says nothing until its caller leaves.
type endless struct{ ctx context.Context }

func (e *endless) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

// stuck is a ledger that stops coming back.
type stuck struct {
	budget.Ledger
	held atomic.Pointer[chan struct{}]
}

func (s *stuck) Write(ctx context.Context, owner string, wait bool, entries []budget.Entry) ([]budget.Standing, error) {
	if held := s.held.Load(); held != nil {
		<-*held
	}
	return s.Ledger.Write(ctx, owner, wait, entries)
}

// TestFirstByteWaitsForNoDisk: with a ledger that does not come back, requests
// are taken and answers stream, from the block at hand.
func TestFirstByteWaitsForNoDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &stuck{Ledger: budget.NewMemory(nil)}
		s := openSpending(t, ledger, tokens(100_000), says(200, "text/event-stream", chatStream("hel", "lo")))
		held := make(chan struct{})
		ledger.held.Store(&held)
		began := time.Now()
		for range 10 {
			resp, err := s.door.RoundTrip(ask(t.Context(), t, chat, "hi", true))
			if err != nil {
				t.Fatal(err)
			}
			if got := body(t, resp); !strings.Contains(got, "hel") || resp.StatusCode != 200 {
				t.Fatalf("status %d: %s", resp.StatusCode, got)
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("ten answers waited %v", waited)
		}
		req := ask(t.Context(), t, chat, "hi", true)
		req.Body = io.NopCloser(strings.NewReader(`{"model":"m","messages":[],"max_tokens":90000}`))
		resp, err := s.door.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, resp); resp.StatusCode != 429 || !strings.Contains(got, "could not be reached") {
			t.Errorf("status %d: %s", resp.StatusCode, got)
		}
		ledger.held.Store(nil)
		close(held)
	})
}

// A profile whose budget limits money refuses a model without a price.
func TestUnpricedModel(t *testing.T) {
	s := openSpending(t, budget.NewMemory(nil), budget.Limit{USD: budget.AtMost(budget.Dollar)}, says(200, "application/json", chatBody("hello")))
	for request, want := range map[string]string{
		`{"model":"new","messages":[]}`:                          `the price of model \"new\" is not known`,
		`{"model":"m","messages":[],"service_tier":"priority"}`:  `the price of model \"m\" in tier \"priority\" is not known`,
		`{"model":"m","messages":[],"service_tier":"f\u0061st"}`: `the price of model \"m\" in tier \"fast\" is not known`,
		`{"model":"m","messages":[],"service_tier":"default"}`:   "",
		`{"model":"m","messages":[],"service_tier":null}`:        "",
	} {
		req := ask(t.Context(), t, chat, "", false)
		req.Body = io.NopCloser(strings.NewReader(request))
		resp, err := s.door.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, resp); (resp.StatusCode == 429) != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: status %d: %s", request, resp.StatusCode, got)
		}
	}
}

// A run's own cap holds for all its calls, and for no other's.
func TestCap(t *testing.T) {
	s := openSpending(t, budget.NewMemory(nil), budget.Limit{}, says(200, "application/json", chatBody("hello")))
	status := func(ctx context.Context) int {
		resp, err := s.door.RoundTrip(ask(ctx, t, chat, "hi", false))
		if err != nil {
			t.Fatal(err)
		}
		body(t, resp)
		return resp.StatusCode
	}
	one := govern.WithCap(t.Context(), "run_1", 130)
	for i, want := range []int{200, 429} {
		if got := status(one); got != want {
			t.Errorf("call %d: status %d, want %d", i+1, got, want)
		}
	}
	if got := status(govern.WithCap(t.Context(), "run_2", 130)); got != 200 {
		t.Errorf("another run's: status %d", got)
	}
}

// Who brings no ledger has budgets in memory, in plain words.
func TestPlainBudgets(t *testing.T) {
	most := int64(120)
	door, err := govern.Open(govern.Config{
		Upstreams: []govern.Upstream{{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://openai.invalid/v1", Transport: says(200, "application/json", chatBody("hello"))}},
		Profiles:  []govern.Profile{{Name: "p", Upstreams: []string{"o"}, Models: []string{"gpt-5"}, ReserveTokens: 100}},
		Record:    (&records{}).add,
		Budgets:   []govern.Budget{{Kind: "team", Name: "search", Tokens: &most}, {Kind: "host", USD: "0.5"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	ctx := govern.WithCaller(t.Context(), govern.Caller{Key: "k", Team: "search"})
	for i, want := range []int{200, 429} {
		ctx, x := govern.Watch(ctx)
		req := ask(ctx, t, chat, "", false)
		req.Body = io.NopCloser(strings.NewReader(`{"model":"gpt-5","messages":[]}`))
		resp, err := door.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		got := body(t, resp)
		if resp.StatusCode != want || want == 429 && !strings.Contains(got, "the budget of team search") {
			t.Errorf("call %d: status %d: %s", i+1, resp.StatusCode, got)
		}
		if o, ok := x.Outcome(); !ok || want == 200 && o.USD != "0.00009875" || want == 429 && (o.Status != "budget_exceeded" || o.USD != "0.00") {
			t.Errorf("call %d: outcome %+v", i+1, o)
		}
	}
	for _, b := range []govern.Budget{{Kind: "host", Name: "x"}, {Kind: "profile"}, {}, {Kind: "host", USD: "$5"}} {
		if _, err := govern.Open(govern.Config{
			Upstreams: []govern.Upstream{{Name: "o", Protocol: govern.OpenAI, BaseURL: "http://openai.invalid/v1"}},
			Profiles:  []govern.Profile{{Name: "p"}}, Record: (&records{}).add, Budgets: []govern.Budget{b},
		}); err == nil {
			t.Errorf("%+v is taken", b)
		}
	}
}
