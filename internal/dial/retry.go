package dial

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter is how long an answer asks to be left alone: Retry-After-Ms, or
// Retry-After in seconds or as a date, at most a day; 0 where it does not say.
func RetryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return within(ms, time.Millisecond)
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return within(s, time.Second)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// within is a number of units, if it is one that a day has.
func within(n float64, unit time.Duration) time.Duration {
	const day = 24 * time.Hour
	if !(n > 0) {
		return 0
	}
	if n > float64(day/unit) {
		return day
	}
	return time.Duration(n * float64(unit))
}
