package signal

import (
	"context"
	"fmt"
	"math/bits"
)

// warnAt and haltAt are how full a budget may be, in hundredths.
const (
	warnAt = 80
	haltAt = 100
)

// Level is how much of a budget is spent, both in one unit.
type Level struct {
	Budget       string // whose, and of what, for people
	Spent, Limit int64
}

// filled is how full it is, in hundredths; what has no room is full.
func (l Level) filled() int {
	if l.Limit <= 0 {
		return haltAt
	}
	hi, lo := bits.Mul64(uint64(max(l.Spent, 0)), 100)
	if hi >= uint64(l.Limit) {
		return 1 << 30
	}
	n, _ := bits.Div64(hi, lo, uint64(l.Limit))
	return int(min(n, 1<<30))
}

// costBudget warns where a budget that the run draws on is nearly spent, and
// halts where one is. It asks how full they are when the step is judged, and is
// taken at that answer; where nobody can say it fails, and so halts.
type costBudget struct {
	levels func(context.Context) ([]Level, error)
}

func (costBudget) Name() string { return "cost_budget" }

func (c costBudget) Judge(ctx context.Context, _ History) (Judgement, error) {
	j := Judgement{Result: OK, Limit: haltAt}
	if c.levels == nil {
		return j, nil
	}
	levels, err := c.levels(ctx)
	if err != nil {
		return Judgement{}, err
	}
	for _, l := range levels {
		n := l.filled()
		if n < int(j.Value) || n < warnAt {
			j.Value = max(j.Value, float64(n))
			continue
		}
		j.Value, j.Result = float64(n), Warn
		if n >= haltAt {
			j.Result = Halt
		}
		j.Note = fmt.Sprintf("the budget of %s is spent to %d %%", l.Budget, n)
	}
	return j, nil
}
