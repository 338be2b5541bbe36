package govern

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/stoplog/stoplog/guard/disclosure"
	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/wire"
)

// Transport is the door. It is safe for use by several goroutines.
type Transport struct {
	profiles   map[string]*profile
	first      *profile
	values     Values
	approvals  Approvals
	record     func(...Record) error
	purse      *budget.Purse
	rates      budget.Limiter
	closers    []func() error
	maxBody    int64
	labelRates []Rate
}

// RoundTrip asks a model, governed. See the package's laws for what an error
// means; every other outcome is an answer in the caller's protocol.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, refusal, err := t.identify(req)
	if err != nil || refusal != nil {
		return refusal, err
	}
	if id := req.Header.Get(headerApproval); id != "" && !c.route.models {
		return c.again(id)
	}
	if refusal, err := c.judgeRequest(); err != nil || refusal != nil {
		return refusal, err
	}
	if refusal, err := c.begin(); err != nil || refusal != nil {
		return refusal, err
	}
	if refusal, err := c.reserve(); err != nil || refusal != nil {
		return refusal, err
	}
	resp, err := c.exchange()
	if err != nil {
		c.debit(c.estimate()) // whatever became of it, unless it was settled
	}
	return resp, err
}

// exchange calls an upstream and judges its answer.
func (c *call) exchange() (*http.Response, error) {
	resp, err := c.callUpstream()
	if err != nil {
		return nil, err
	}
	if c.body, c.places = nil, nil; c.asked != nil { // an answer may last; what was asked need not
		c.asked.Doc, c.asked.Recalled, c.asked.Decisions = nil, nil, nil
	}
	return c.judgeAnswer(resp)
}

// Close ends what Open made: the record, the budgets in memory.
func (t *Transport) Close() error {
	var errs []error
	for _, c := range t.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// A call is one request on its way.
type call struct {
	t       *Transport
	ctx     context.Context
	req     *http.Request
	run     string
	route   route
	format  *wire.Format
	profile *profile
	body    []byte

	asked    *wire.Request // nil for a list of models
	places   *places       // nil where nothing that is redacted comes back
	restore  *wire.Placeholders
	request  string // a digest of what was asked, where an answer may be kept
	reserved *budget.Reservation
	pass     *budget.Pass
	upstream *Upstream
	watch    *Exchange
	header   http.Header // of the upstream's answer, what of it may be passed on
}

// identify says what a request wants, of whom, under which profile.
func (t *Transport) identify(req *http.Request) (*call, *http.Response, error) {
	c := &call{t: t, ctx: req.Context(), req: req, run: "run_" + newID(), profile: t.first}
	c.watch, _ = c.ctx.Value(watchKey{}).(*Exchange)
	if name, ok := c.ctx.Value(profileKey{}).(string); ok {
		if c.profile = t.profiles[name]; c.profile == nil {
			return nil, nil, fmt.Errorf("govern: there is no profile %q", name)
		}
	}
	body := req.Body
	if body == nil {
		body = http.NoBody
	}
	defer body.Close()
	var ok bool
	if c.route, ok = findRoute(req); !ok {
		return nil, c.refuse(notServed(req)), nil
	}
	c.format = c.route.format
	if c.route.protocol == Anthropic {
		if v := req.Header.Get("anthropic-version"); v != "" && !anthropicVersions[v] {
			return nil, c.refuse(wire.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "unsupported_version",
				Message: fmt.Sprintf("anthropic-version %q is not spoken here: use 2023-06-01 or 2026-10-21", printable(v))}), nil
		}
	}
	if len(c.profile.upstreams[c.route.protocol]) == 0 {
		return nil, nil, fmt.Errorf("govern: profile %q has no upstream that speaks %s", c.profile.Name, c.route.protocol)
	}
	var e *wire.Error
	if c.body, e = readBody(req, body, t.maxBody); e != nil {
		return nil, c.refuse(*e), nil
	}
	return c, nil, nil
}

// judgeRequest screens what is asked. A denied request gets its answer here.
func (c *call) judgeRequest() (*http.Response, error) {
	if c.route.models {
		return nil, c.keep(Started{Mount: c.route.protocol, Profile: c.profile.Name, Upstream: c.upstreams()[0].Name, Parent: c.parent(), Caller: c.caller()})
	}
	asked, err := c.judged()
	if refused := (*wire.RefusedError)(nil); errors.As(err, &refused) {
		return c.refuse(wire.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: refused.Code, Message: refused.Message}), nil
	}
	if bad := (*badRequest)(nil); errors.As(err, &bad) {
		return c.refuse(wire.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "invalid_json", Message: bad.Error()}), nil
	}
	if err != nil {
		return nil, err
	}
	if c.asked = asked; c.keeps() {
		c.request = c.digest()
	}
	outcome := asked.Outcome
	denied := outcome.Status != wire.Allowed && outcome.Status != wire.Redacted
	if !denied && !c.profile.allows(asked.Model) {
		outcome, denied = wire.Outcome{Status: wire.Blocked, Guard: wire.GuardPolicy, Rule: "models"}, true
	}
	facts := verdicts(asked.Decisions)
	if !denied {
		allowed, more := c.judgeClass()
		if facts = append(facts, more...); !allowed {
			outcome, denied = wire.Outcome{Status: wire.Blocked, Guard: wire.GuardPolicy, Rule: RuleDataClass, Reason: c.tooConfidential()}, true
		}
	}
	first := ""
	if !denied {
		first = c.upstreams()[0].Name
	}
	if err := c.keep(Started{Mount: c.route.protocol, Profile: c.profile.Name, Upstream: first, Model: c.modelName(), Stream: asked.Stream, Parent: c.parent(), Caller: c.caller()}, facts...); err != nil {
		return nil, err
	}
	if !denied {
		return nil, nil
	}
	outcome.Usage = wire.Usage{} // nothing was sent
	if err := c.settle(outcome); err != nil {
		return nil, err
	}
	return c.refuse(deniedInput(outcome)), nil
}

// parent is the run that the call is part of.
func (c *call) parent() string {
	run, _ := c.ctx.Value(parentKey{}).(string)
	return run
}

// modelName is the model asked for, as far as it may be recorded: one that the
// profile does not know could be anything, and one with a finding is evidence.
func (c *call) modelName() string {
	found := slices.ContainsFunc(c.asked.Decisions, func(d wire.Decision) bool { return d.Channel == "model" })
	if found || !c.profile.allows(c.asked.Model) || !grammatical(c.asked.Model) {
		return ""
	}
	return c.asked.Model
}

func (c *call) upstreams() []*Upstream { return c.profile.upstreams[c.route.protocol] }

func (c *call) estimate() wire.Usage {
	if c.asked == nil {
		return wire.Usage{}
	}
	return wire.Usage{Input: c.asked.Tokens, Estimated: true}
}

// judgeAnswer makes the governed answer of an upstream's.
func (c *call) judgeAnswer(resp *http.Response) (*http.Response, error) {
	if err := c.judgeHeader(resp.Header); err != nil {
		resp.Body.Close()
		return nil, err
	}
	ctx := c.ctx
	if c.asked != nil {
		ctx = disclosure.WithPrompt(ctx, c.asked.Prompt)
	}
	opt := wire.Options{Context: ctx, Chain: c.profile.output, Calls: c.profile.calls(), Run: c.run, Restore: c.restore, Recalls: c.recalls()}
	if c.asked != nil {
		opt.Choices, opt.Usage, opt.Input = c.asked.Choices, c.asked.Usage, c.asked.Tokens
		if c.asked.Outcome.Status == wire.Redacted {
			opt.Redacted = &c.asked.Outcome
		}
	}
	body, err := decode(resp.Header.Get("Content-Encoding"), resp.Body)
	if err != nil {
		resp.Body.Close()
		reason := "the upstream's answer " + err.Error()
		if errors.Is(err, errEncoding) {
			reason = "the upstream's answer is in a Content-Encoding that was not asked for"
		}
		return c.broken(resp.StatusCode, reason)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	streamed := c.asked != nil && c.asked.Stream && resp.StatusCode < 300
	switch {
	case streamed && kind == "text/event-stream":
		return c.respond(resp.StatusCode, "text/event-stream", newStreamBody(c, opt, resp.Body, body)), nil
	case streamed || kind != "application/json" || resp.StatusCode >= 300 && resp.StatusCode < 400:
		resp.Body.Close()
		return c.broken(resp.StatusCode, fmt.Sprintf("the upstream answered %d with something that is not %s", resp.StatusCode, wanted(streamed)))
	}
	return c.wholeAnswer(opt, resp, body)
}

// wholeAnswer judges an answer that is not streamed.
func (c *call) wholeAnswer(opt wire.Options, resp *http.Response, body io.Reader) (*http.Response, error) {
	defer resp.Body.Close()
	doc, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil && c.ctx.Err() != nil:
		return nil, errors.Join(c.settle(wire.Outcome{Status: wire.Cancelled, Usage: c.estimate()}), c.ctx.Err())
	case err != nil:
		return c.broken(resp.StatusCode, "the upstream's answer ended too early")
	case len(doc) > maxAnswer:
		return c.broken(resp.StatusCode, fmt.Sprintf("the upstream's answer is larger than %d bytes", maxAnswer))
	}
	judge := c.format.Answer
	if c.route.models {
		judge = c.format.Models
	}
	if resp.StatusCode >= 400 {
		opt.Input = 0 // nothing is charged for it
		opt.Failed = fmt.Sprintf("the upstream answered %d", resp.StatusCode)
	}
	v := judge(opt, doc)
	if err := c.keepVerdicts(v.Decisions); err != nil {
		return nil, err
	}
	c.remember(v.Thoughts)
	if v.Doc != nil && v.Outcome.Status == wire.ApprovalRequired && c.keeps() && resp.StatusCode < 300 {
		return c.keepWhole(judge, opt, resp.StatusCode, doc, v)
	}
	if v.Doc == nil {
		return c.failed(resp.StatusCode, v.Outcome)
	}
	if err := c.settle(v.Outcome); err != nil {
		return nil, err
	}
	return c.document(resp.StatusCode, v), nil
}

// keep records facts about the call. If that fails the call has failed, for
// who watches it too: nothing that depends on the facts may show.
func (c *call) keep(first Fact, more ...Fact) error {
	now := time.Now()
	records := make([]Record, 0, 1+len(more))
	for _, f := range append([]Fact{first}, more...) {
		records = append(records, Record{Run: c.run, At: now, Fact: f})
	}
	if err := c.t.record(records...); err != nil {
		c.watch.set(c.run, wire.Outcome{Status: wire.UpstreamFailed, Reason: "the record could not be kept"})
		return fmt.Errorf("govern: the request was not recorded: %w", err)
	}
	return nil
}

func (c *call) keepVerdicts(ds []wire.Decision) error {
	if len(ds) == 0 {
		return nil
	}
	facts := verdicts(ds)
	return c.keep(facts[0], facts[1:]...)
}

// settle records how the call ended, and tells who watches.
func (c *call) settle(o wire.Outcome) error {
	if c.format == wire.AnthropicCountTokens {
		o.Usage = wire.Usage{}
	}
	s := c.ended(o)
	err := c.keep(s)
	if err == nil {
		c.watch.settle(c.run, o, s.Cost)
	}
	return err
}

// ended is how the call ended, and what that cost.
func (c *call) ended(o wire.Outcome) Settled {
	s := settled(o)
	s.Cost = c.debit(o.Usage)
	if c.upstream != nil && c.upstream != c.upstreams()[0] {
		s.Upstream = c.upstream.Name
	}
	return s
}

func verdicts(ds []wire.Decision) []Fact {
	var facts []Fact
	for _, d := range ds {
		v := Verdict{Channel: d.Channel, Guard: d.Guard, Rule: d.Rule, Mode: d.Mode, Verdict: d.Verdict,
			Start: d.Start, End: d.End, Severity: d.Severity, Fingerprint: d.Fingerprint, Allowed: d.Allowed}
		if v.Guard == "" {
			v.Guard = "chain"
		}
		if d.Err != nil {
			v.Error = d.Err.Error()
		}
		facts = append(facts, v)
	}
	return facts
}

func newID() string { return strings.ToLower(ulid.Make().String()) }
