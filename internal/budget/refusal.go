package budget

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Reason is why something may not be spent.
type Reason string

const (
	// Exceeded: the envelope has not enough left.
	Exceeded Reason = "exceeded"
	// Unpriced: money is limited and the price of the model is not known.
	Unpriced Reason = "unpriced"
	// Unreachable: the ledger did not answer.
	Unreachable Reason = "unreachable"
)

// Refusal says that an amount may not be spent, and by which envelope.
type Refusal struct {
	Reason Reason
	ID     ID
	Limit  Limit
	// Need is what was asked for, Spent what is gone, Reserved what calls under way
	// and other processes have.
	Need, Spent, Reserved Amount
	Model, Tier           string // if Unpriced
	Err                   error  // if Unreachable
}

// String says it in a sentence, with figures.
func (r *Refusal) String() string {
	switch r.Reason {
	case Unpriced:
		if r.Tier != "" {
			return fmt.Sprintf("the price of model %q in tier %q is not known, and the budget of %s limits money: ask in the standard tier", r.Model, r.Tier, r.ID.Scope)
		}
		return fmt.Sprintf("the price of model %q is not known, and the budget of %s limits money: give it one under prices", r.Model, r.ID.Scope)
	case Unreachable:
		return fmt.Sprintf("the budget of %s could not be reached: %v", r.ID.Scope, r.Err)
	}
	var parts []string
	if r.Limit.Tokens.Set {
		if left := r.Limit.Tokens.Max - r.Spent.Tokens - r.Reserved.Tokens; r.Need.Tokens > left || !r.Limit.USD.Set {
			parts = append(parts, fmt.Sprintf("%s tokens are needed and %s of %s are left (%s spent, %s reserved)",
				thousands(r.Need.Tokens), thousands(max(left, 0)), thousands(r.Limit.Tokens.Max), thousands(r.Spent.Tokens), thousands(r.Reserved.Tokens)))
		}
	}
	if r.Limit.USD.Set {
		if left := r.Limit.USD.Max - r.Spent.USD - r.Reserved.USD; r.Need.USD > left || len(parts) == 0 {
			parts = append(parts, fmt.Sprintf("$%s are needed and $%s of $%s are left ($%s spent, $%s reserved)",
				r.Need.USD, max(left, 0), r.Limit.USD.Max, r.Spent.USD, r.Reserved.USD))
		}
	}
	s := fmt.Sprintf("the budget of %s does not allow it: %s", r.ID.Scope, strings.Join(parts, "; "))
	if r.ID.Day != 0 {
		s += "; a new day begins at " + r.ID.Day.Ends().Format(time.RFC3339)
	}
	return s
}

// thousands writes a number in groups of three digits.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
