package dial

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second}, {"Retry-After", "0.5", 500 * time.Millisecond}, {"Retry-After-Ms", "20.5", 20500 * time.Microsecond},
		{"Retry-After", "-1", 0}, {"Retry-After", "NaN", 0}, {"Retry-After", "1e300", day}, {"Retry-After", "soon", 0},
		{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0}, {"X-Other", "7", 0},
	} {
		if got := RetryAfter(http.Header{http.CanonicalHeaderKey(c.name): {c.value}}); got != c.want {
			t.Errorf("%s: %s: %s, want %s", c.name, c.value, got, c.want)
		}
	}
}
