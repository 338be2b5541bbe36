package govern

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/wire"
)

// begin holds the caller to the rates of its key and of its labels. One who is too fast is told when to
// come again, and nothing was sent.
func (c *call) begin() (*http.Response, error) {
	who := c.caller()
	if who == nil || c.asked == nil {
		return nil, nil
	}
	claim := c.claim()
	pass, slow := c.t.rates.Begin(time.Now(), claim.Input+claim.Output, c.t.rated(who)...)
	if slow == nil {
		c.pass = pass
		return nil, nil
	}
	o := wire.Outcome{Status: wire.BudgetExceeded, Guard: "rate", Rule: slow.Name, Reason: slow.String()}
	if err := c.settle(o); err != nil {
		return nil, err
	}
	resp := c.refuse(wire.Error{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: o.Reason, Outcome: &o})
	if slow.After > 0 { // later it may be another answer
		resp.Header.Set("X-Should-Retry", "true")
		resp.Header.Set("Retry-After", strconv.FormatInt(int64(slow.After/time.Second), 10))
	}
	return resp, nil
}

// Rate is how much all that bears a label may begin in a minute. Each process
// counts for itself.
type Rate struct {
	Kind string // key, team, app or user
	Name string // of the label; `*`: each that has no rate of its own
	// Requests and Tokens are the most in a minute; 0 is no limit.
	Requests, Tokens int64
}

// rated are the rates that a caller is held to: the key's own, and those of its
// labels.
func (t *Transport) rated(who *Caller) []budget.Rated {
	all := []budget.Rated{{Name: "key " + who.Key, Rate: budget.PerMinute{Requests: who.RequestsPerMinute, Tokens: who.TokensPerMinute}}}
	for _, label := range [][2]string{{"key", cmp.Or(who.Name, who.Key)}, {"team", who.Team}, {"app", who.App}, {"user", who.User}} {
		if label[1] == "" {
			continue
		}
		i := slices.IndexFunc(t.labelRates, func(r Rate) bool { return r.Kind == label[0] && r.Name == label[1] })
		if i < 0 {
			i = slices.IndexFunc(t.labelRates, func(r Rate) bool { return r.Kind == label[0] && r.Name == "*" })
		}
		if i >= 0 {
			name := label[0] + " " + label[1]
			if label[0] == "key" {
				name = "each key: " + label[1] // beside the key's own
			}
			all = append(all, budget.Rated{Name: name, Rate: budget.PerMinute{Requests: t.labelRates[i].Requests, Tokens: t.labelRates[i].Tokens}})
		}
	}
	return all
}
