package govern

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/wire"
)

// Approvals keeps answers that a guard withheld until a person has decided, sealed,
// and gives them to those who asked for them. It is safe for use by several
// goroutines.
type Approvals interface {
	// Keep asks a person about a withheld answer and keeps it. From then on what
	// becomes of the request is recorded with the decision. It returns the
	// question's id once all of it is durable.
	//
	// The answer to a call that is part of a run is kept for that run, which asks
	// itself: there is no question, the id is the call's, and what becomes of the
	// call is recorded by the door.
	Keep(ctx context.Context, w WithheldAnswer) (id string, err error)
	// Await returns when the question is decided, or its time has passed; or, with
	// the context's error, when that ends.
	Await(ctx context.Context, id string) (Decided, error)
	// Answer returns an answer that was approved, to the caller who asked for it.
	// request is a digest of what is asked now; empty: nothing is. It fails with a
	// *NotGivenError.
	Answer(ctx context.Context, id, caller, request string) (Released, error)
}

// WithheldAnswer is an answer that waits for a person.
type WithheldAnswer struct {
	Run             string
	Parent          string // the run that the call is part of; may be empty
	Profile         string
	Caller, Request string // digests of who asked, and what
	Released        Released
	// Guard and Rule withheld it; Findings are all that ask for approval, and Denied
	// is what nobody can let through, empty if there is none.
	Guard, Rule string
	Findings    []Verdict
	Denied      string
	// Settled is how the request ends if the answer is approved.
	Settled Settled
}

// Released is an answer as its caller gets it.
type Released struct {
	Status int
	Kind   string // content type
	Body   []byte
}

// Decided is what became of a question.
type Decided struct {
	Approved bool
	// Words say it to the caller: denied by whom, expired when.
	Words string
}

// NotGivenError says why an answer is not given out.
type NotGivenError struct {
	Status int // HTTP
	Code   string
	Words  string
}

func (e *NotGivenError) Error() string { return e.Words }

// Headers with which a caller says what is to become of a withheld answer.
const (
	headerApproval = "Stoplog-Approval" // ask again: the answer of this approval
	headerWait     = "Stoplog-Wait"     // wait so long for the decision
)

const (
	// maxWait is the longest that a caller may wait for a decision.
	maxWait = time.Hour
	// maxWithheld is the largest answer that is kept for a person, in bytes.
	maxWithheld = 16 << 20
	// withheldFor is how long an upstream may take to say all of an answer of which
	// nothing can be shown.
	withheldFor = 10 * time.Minute
)

// keeps reports whether an answer to the call is kept where a guard withholds it.
func (c *call) keeps() bool {
	return c.t.approvals != nil && c.asked != nil && c.profile.asks
}

// asks reports whether a guard may ask for approval of what it judges. One that
// does not say how strict it is may.
func asks(members []guard.Member) bool {
	for _, m := range members {
		if m.Mode != guard.Enforce {
			continue
		}
		if s, ok := m.Guard.(guard.Strict); !ok || s.Strictest() >= guard.RequireApproval {
			return true
		}
	}
	return false
}

// wait is how long the caller waits for a decision.
func (c *call) wait() time.Duration {
	d, err := time.ParseDuration(c.req.Header.Get(headerWait))
	if err != nil || d < 0 {
		return 0
	}
	return min(d, maxWait)
}

// digest is of what was asked, as it was sent.
func (c *call) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "stoplog.request.v1\x00%s\x00%s\x00%s\x00%d\x00", c.route.protocol, c.route.path, c.profile.Name, len(c.body))
	h.Write(c.body)
	return hex.EncodeToString(h.Sum(nil))
}

// withhold keeps an answer that the guards withheld. full is what leaves once a
// person has approved; shown is how what was withheld ends.
func (c *call) withhold(full wire.Outcome, ds []wire.Decision, released Released, shown wire.Outcome) (id string, err error) {
	w := WithheldAnswer{
		Run: c.run, Parent: c.parent(), Profile: c.profile.Name, Caller: c.who(), Request: c.request, Released: released,
		Guard: shown.Guard, Rule: shown.Rule,
	}
	for _, v := range verdicts(ds) {
		if f := v.(Verdict); f.Mode == guard.Enforce && f.Verdict == guard.RequireApproval {
			w.Findings = append(w.Findings, f)
		}
	}
	if full.Status == wire.Blocked || full.Status == wire.ApprovalRequired {
		w.Denied = full.Guard + "/" + full.Rule
	}
	w.Settled = c.ended(full)
	w.Settled.Status, w.Settled.Reason = "completed", "completed"
	return c.t.approvals.Keep(context.WithoutCancel(c.ctx), w)
}

// waits is what a caller is told of an answer that is kept.
func waits(id string) string {
	return "the rest waits for a person: read it with GET /v1/approvals/" + id + "/answer once it is approved, or ask the same again with the header " + headerApproval + ": " + id
}

// waitsInRun is what a run is told whose answer is kept for it.
const waitsInRun = "the rest is kept until a person has decided"

// notKept is what a caller is told of an answer that could not be kept.
func notKept(err error) string {
	return "the rest was withheld, and nobody can approve it: " + err.Error()
}

var (
	errLost     = errors.New("the upstream's answer did not come whole")
	errTooLarge = fmt.Errorf("the answer is larger than %d bytes, the most that is kept", maxWithheld)
)

// again answers a request that is asked again for what was approved of its answer.
func (c *call) again(id string) (*http.Response, error) {
	if err := c.keep(Started{Mount: c.route.protocol, Profile: c.profile.Name, Parent: c.parent(), Caller: c.caller()}); err != nil {
		return nil, err
	}
	if c.t.approvals == nil {
		return c.notGiven(&NotGivenError{Status: http.StatusNotFound, Code: "approval_not_found", Words: "there is no such approval"})
	}
	released, err := c.t.approvals.Answer(c.ctx, id, c.who(), c.digest())
	if no := (*NotGivenError)(nil); errors.As(err, &no) {
		return c.notGiven(no)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("govern: read an approved answer: %w", err), c.settle(wire.Outcome{Status: wire.UpstreamFailed, Reason: "the approved answer could not be read"}))
	}
	if err := c.settle(wire.Outcome{Status: wire.Allowed}); err != nil {
		return nil, err
	}
	resp := c.document(released.Status, wire.Verdict{Doc: released.Body})
	resp.Header.Set("Content-Type", released.Kind)
	resp.Header.Set(headerApproval, id)
	return resp, nil
}

// notGiven says why there is no answer.
func (c *call) notGiven(e *NotGivenError) (*http.Response, error) {
	if err := c.settle(wire.Outcome{Status: wire.Blocked, Guard: "approval", Rule: e.Code}); err != nil {
		return nil, err
	}
	resp := c.refuse(wire.Error{Status: e.Status, Type: "permission_error", Code: e.Code, Message: e.Words})
	resp.Header.Set("X-Should-Retry", strconv.FormatBool(false))
	return resp, nil
}

// approvedOr waits, if the caller does, for a decision on an unstreamed answer, and
// says whether it was a yes; words are what the caller is told else.
func (c *call) approvedOr(id string) (approved bool, words string) {
	if c.wait() == 0 {
		return false, waits(id)
	}
	ctx, stop := context.WithTimeout(c.ctx, c.wait())
	defer stop()
	d, err := c.t.approvals.Await(ctx, id)
	switch {
	case err != nil:
		return false, waits(id)
	case d.Approved:
		return true, ""
	}
	return false, d.Words
}

// keepWhole keeps an unstreamed answer that was withheld, and returns what leaves
// of it now: all of it, if a person who is waited for approves, or what was let
// through, with what there is to say.
func (c *call) keepWhole(judge func(wire.Options, []byte) wire.Verdict, opt wire.Options, status int, doc []byte, shown wire.Verdict) (*http.Response, error) {
	lifted := opt
	lifted.Chain, lifted.Run = opt.Chain.Lifted(), c.run
	full := judge(lifted, doc)
	id, err := "", errLost
	switch {
	case len(full.Doc) > maxWithheld:
		err = errTooLarge
	case full.Doc != nil:
		id, err = c.withhold(full.Outcome, full.Decisions, Released{Status: status, Kind: "application/json", Body: full.Doc}, shown.Outcome)
	}
	if err != nil {
		opt.Why = notKept(err)
		v := judge(opt, doc)
		if err := c.settle(v.Outcome); err != nil {
			return nil, err
		}
		return c.document(status, v), nil
	}
	if c.parent() != "" {
		opt.Why = waitsInRun
		v := judge(opt, doc)
		if err := c.settle(v.Outcome); err != nil {
			return nil, err
		}
		return c.document(status, v), nil
	}
	approved, words := c.approvedOr(id)
	if c.ctx.Err() != nil {
		return nil, c.ctx.Err() // the answer waits for its caller to come back
	}
	if approved {
		c.watch.set(c.run, full.Outcome)
		return c.document(status, full), nil
	}
	opt.Approval, opt.Why = id, words
	v := judge(opt, doc)
	c.watch.set(c.run, v.Outcome)
	resp := c.document(status, v)
	resp.Header.Set(headerApproval, id)
	return resp, nil
}
