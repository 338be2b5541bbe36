package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/flow/steps"
)

// Driver asks models for verdicts. It is a [flow.Judge], and safe for use by
// several goroutines.
type Driver struct {
	// Door is the way to models: a govern.Transport.
	Door http.RoundTripper
	// Program is the claude program; empty is the one that PATH of this process
	// names.
	Program string
	// Deny are places that no program gets to see, beside the sandbox's own list:
	// the state directory.
	Deny []string
	// Dial connects to the hosts of a scope; nil where no scope may have any.
	Dial func(hosts []string) func(ctx context.Context, network, address string) (net.Conn, error)
	// Idle is how long nothing may come of a program; 0 is 2 minutes, which is
	// longer than providers are silent within an answer.
	Idle time.Duration
}

const standardIdle = 2 * time.Minute

var _ flow.Judge = (*Driver)(nil)

// question is an inquiry on its way.
type question struct {
	flow.Inquiry
	driver *Driver
	schema *jsonschema.Schema
	meter  *meter
	turns  int // answers that were asked for without the program
	served string
}

// Judge asks once, as [flow.Judge] says, and once more if all that was wrong is
// the answer itself.
func (d *Driver) Judge(ctx context.Context, i flow.Inquiry) flow.Judgement {
	schema, err := compile(i.Schema)
	if err != nil {
		return flow.Judgement{State: steps.Failed, Reason: err.Error()}
	}
	// The cap of time is for all of it.
	ctx, cancel := context.WithTimeoutCause(ctx, i.MaxLatency, errLate)
	defer cancel()
	ctx = govern.WithScope(ctx, "playbook", i.Playbook)
	q := &question{Inquiry: i, driver: d, schema: schema, meter: newMeter(i.MaxTokens)}
	ask := q.askCLI
	if i.Via == flow.ViaAPI {
		ask = q.askAPI
	}
	r := q.withRepair(ctx, ask)
	return flow.Judgement{State: r.State, Reason: r.Reason, Output: r.Output, Served: q.served, Usage: q.meter.usage()}
}

// errLate is the cause of a context that ended because its time was over.
var errLate = errors.New("it took longer than it may")

// over says what the end of a context comes to.
func over(ctx context.Context) *Reading {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(context.Cause(ctx), errLate):
		return reads(steps.FailedTimeout, "it took longer than it may")
	}
	return reads(steps.Cancelled, "it was cancelled")
}

// withRepair asks, and asks again with what was wrong, if that was the answer.
func (q *question) withRepair(ctx context.Context, ask func(ctx context.Context, prompt string) Reading) Reading {
	r := ask(ctx, q.Prompt)
	if !r.Repairable {
		return r
	}
	first := r.Reason
	if r = ask(ctx, q.Prompt+"\n\n"+repair(r.Reason)); r.State == steps.FailedSchema {
		r.Reason = fmt.Sprintf("%s (asked twice; the first time %s)", r.Reason, first)
	}
	return r
}

// repair is what is said to a model whose answer could not be used.
func repair(reason string) string {
	return "You were asked this before, and your answer could not be used: " + reason + ". Answer again, in the form that was asked for."
}

// environment is what the program is given: the step's own, and no name that
// would lead it elsewhere.
func (q *question) environment() ([]string, error) {
	var env []string
	for name, value := range q.Env {
		for _, own := range []string{"ANTHROPIC_", "CLAUDE_", "AWS_BEARER", "DISABLE_"} {
			if strings.HasPrefix(name, own) {
				return nil, fmt.Errorf("the step's environment has %s, which is the runtime's to set", name)
			}
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

// checks are what an answer must pass.
func (q *question) checks() func(json.RawMessage) error { return checker(q.schema) }
