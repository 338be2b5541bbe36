package wire

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stoplog/stoplog/guard"
)

// prose is n bytes of ordinary text with some code in it.
func prose(n int) string {
	const page = "The lock-keeper opens the upper gate, waits, and logs the level in the book.\n" +
		"\tif err := s.open(ctx, name); err != nil {\n\t\treturn fmt.Errorf(\"open %q: %w\", name, err)\n\t}\n" +
		"It was raised by 12 cm at 14:05 — \u201cas agreed\u201d — and 3 boats went through.\n"
	return strings.Repeat(page, n/len(page)+1)[:n]
}

// BenchmarkRequest is what a request of 10 MB costs, as a multiple of what its
// guards take for the same bytes: once with all of it new, and once more with one
// message more, as a conversation goes on.
func BenchmarkRequest(b *testing.B) {
	const size = 10 << 20
	chain := patterns(b, guard.Redact, "secrets", "credentials", "pii")
	var turns []string
	for i := range 100 {
		turns = append(turns, fmt.Sprintf("%d: ", i)+prose(size/100))
	}
	for _, f := range all {
		doc := conversation(f, turns...)
		more := conversation(f, append(turns, "and now?")...)
		b.Run(f.Name(), func(b *testing.B) {
			var alone, fresh, again time.Duration // of the processor
			for range b.N {
				start := spent(b)
				s := chain.Open(context.Background(), guard.Channel{})
				s.Write(doc)
				s.Close()
				alone += spent(b) - start
				opt := Options{Context: context.Background(), Chain: chain, Clean: &Clean{}}
				for _, ask := range []struct {
					doc []byte
					sum *time.Duration
				}{{doc, &fresh}, {more, &again}} {
					start = spent(b)
					if _, err := f.Request(opt, ask.doc); err != nil {
						b.Fatal(err)
					}
					*ask.sum += spent(b) - start
				}
			}
			b.SetBytes(int64(len(doc)))
			b.ReportMetric(float64(fresh)/float64(alone), "x-guard")
			b.ReportMetric(float64(again)/float64(alone), "x-guard-again")
			b.ReportMetric(float64(alone.Nanoseconds())/float64(b.N)/float64(len(doc)), "guard-ns/B")
		})
	}
}

// spent is the processor time of this process.
func spent(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
