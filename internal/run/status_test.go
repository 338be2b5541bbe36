package run

import (
	"testing"
	"time"
)

func TestSpoken(t *testing.T) {
	for d, want := range map[time.Duration]string{
		10 * time.Second:              "10s",
		10 * time.Minute:              "10m",
		90 * time.Second:              "1m30s",
		2 * time.Hour:                 "2h",
		2*time.Hour + time.Second:     "2h0m1s",
		2*time.Hour + 10*time.Minute:  "2h10m",
		20*time.Hour + 10*time.Second: "20h0m10s",
	} {
		if got := spoken(d); got != want {
			t.Errorf("%v is spoken %q, want %q", d, got, want)
		}
	}
}
