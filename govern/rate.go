package govern

import (
	"net/http"
	"strconv"
	"time"

	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/wire"
)

// begin holds the caller to its key's rate. One who is too fast is told when to
// come again, and nothing was sent.
func (c *call) begin() (*http.Response, error) {
	who := c.caller()
	if who == nil || c.asked == nil {
		return nil, nil
	}
	rated := budget.Rated{Name: "key " + who.Key, Rate: budget.PerMinute{Requests: who.RequestsPerMinute, Tokens: who.TokensPerMinute}}
	claim := c.claim()
	pass, slow := c.t.rates.Begin(time.Now(), claim.Input+claim.Output, rated)
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
