package wire

import "strconv"

// Usage is how many tokens a request took. Input is all of it, whatever was read
// from a cache or written to one, and Output is all of it, reasoning included,
// whichever way the provider counts. What it did not report is an estimate.
type Usage struct {
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Estimated bool  `json:"estimated"`

	CacheRead    int64 `json:"cache_read,omitempty"`     // of Input
	CacheWrite   int64 `json:"cache_write,omitempty"`    // of Input: for the shorter of two times
	CacheWrite1h int64 `json:"cache_write_1h,omitempty"` // of Input: for an hour
	Reasoning    int64 `json:"reasoning,omitempty"`      // of Output
}

// plus is the sum of two reports.
func (u Usage) plus(v Usage) Usage {
	u.Input, u.Output = sum(u.Input, v.Input), sum(u.Output, v.Output)
	u.CacheRead, u.Reasoning = sum(u.CacheRead, v.CacheRead), sum(u.Reasoning, v.Reasoning)
	u.CacheWrite, u.CacheWrite1h = sum(u.CacheWrite, v.CacheWrite), sum(u.CacheWrite1h, v.CacheWrite1h)
	u.Estimated = u.Estimated || v.Estimated
	return u
}

// Estimate is how many tokens a text of n bytes may be: one for each four.
func Estimate(n int64) int64 { return (n + 3) / 4 }

// A report is what a provider says of a usage, by the roles of its fields. What it
// says again replaces what it said.
type report struct {
	said   [reported]bool
	counts [reported]int64
}

const (
	input     = iota // all of the input
	inputRest        // the input without what caches had to do with
	cacheRead
	cacheWrite
	cacheWrite5m
	cacheWrite1h
	output      // all of the output, at its end
	outputSoFar // at some point before
	reasoning
	total
	reported
)

var reportRoles = map[string]int{
	"input": input, "input-rest": inputRest, "cache-read": cacheRead, "cache-write": cacheWrite, "cache-write-5m": cacheWrite5m, "cache-write-1h": cacheWrite1h,
	"output": output, "output-so-far": outputSoFar, "reasoning": reasoning, "total": total,
}

// count notes a token count by the role of its field.
func (o *outcome) count(role string, digits []byte) {
	i, ok := reportRoles[role]
	if !ok {
		return
	}
	if n, ok := count(digits); ok {
		o.report.said[i], o.report.counts[i] = true, n
	}
}

// nextMessage begins to count one more message of the same answer. One that
// begins anew before it has ended is the same one.
func (o *outcome) nextMessage() {
	if o.report.said[output] {
		o.past = o.past.plus(o.report.usage(0, 0))
		o.report = report{}
	}
}

// spent is the usage as far as it is known. What was not reported is estimated;
// neither was a count of nothing where there was something.
func (o *outcome) spent() Usage {
	return o.past.plus(o.report.usage(o.asked, Estimate(o.textSize)))
}

// usage is what a report says of a request of about so many tokens, whose answer
// had about so many so far.
func (r *report) usage(asked, answered int64) Usage {
	n := &r.counts
	u := Usage{CacheRead: n[cacheRead], Reasoning: n[reasoning]}
	u.CacheWrite1h = n[cacheWrite1h]
	u.CacheWrite = max(n[cacheWrite]-n[cacheWrite1h], n[cacheWrite5m], 0)
	if n[cacheWrite] > 0 && !r.said[cacheWrite5m] && !r.said[cacheWrite1h] && r.said[inputRest] {
		u.Estimated = true // for how long is not said, and so not what it costs
	}
	cached := sum(u.CacheRead, sum(u.CacheWrite, u.CacheWrite1h))
	switch {
	case r.said[inputRest]:
		u.Input = sum(n[inputRest], cached)
	case r.said[input]:
		u.Input = max(n[input], cached)
	}
	if u.Input == 0 {
		u.Input, u.Estimated = asked, true
	}
	u.Output = n[output]
	if !r.said[output] && r.said[total] && !u.Estimated { // of what has no output, too
		u.Output = max(n[total]-u.Input, 0)
	} else if !r.said[output] || n[output] == 0 && answered > 0 {
		u.Output, u.Estimated = max(n[outputSoFar], answered), true
	} else if rest := n[total] - u.Input; r.said[total] && rest > u.Output {
		u.Output = rest // some count reasoning apart
	}
	return u
}

// count reads a token count; a number that is none is not reported.
func count(b []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil && n >= 0
}

// sum adds counts, and stays at the largest where they are absurd.
func sum(a, b int64) int64 {
	if c := a + b; c >= a {
		return c
	}
	return 1<<63 - 1
}
