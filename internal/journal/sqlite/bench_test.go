package sqlite_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

// BenchmarkStep is what a durable step of 2 KB costs as a run grows: the model is
// asked (its new message and the call, one commit), and has answered (the answer
// and the evaluation, another). A b.N is a whole run; the metrics are per step,
// at the run's end: the last tenth of its steps.
//
//	go test -bench Step -benchtime 3x ./internal/journal/sqlite
func BenchmarkStep(b *testing.B) {
	for _, steps := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) {
			var last cost
			for b.Loop() {
				last = last.plus(runOf(b, steps))
			}
			n := float64(b.N)
			b.ReportMetric(float64(last.wall.Microseconds())/n, "wall-µs/step")
			b.ReportMetric(float64(last.commits)/n, "commits/step")
			b.ReportMetric(float64(last.written)/n, "written-B/step")
			b.ReportMetric(float64(last.total)/n/1e6, "written-MB/run")
			b.ReportMetric(float64(last.file)/n/1e6, "file-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// cost is per step, but for total and file.
type cost struct {
	wall                          time.Duration
	commits, written, total, file int64
}

func (c cost) plus(d cost) cost {
	return cost{c.wall + d.wall, c.commits + d.commits, c.written + d.written, c.total + d.total, c.file + d.file}
}

// runOf makes a run of so many steps.
func runOf(b *testing.B, steps int) (c cost) {
	path := filepath.Join(b.TempDir(), "stoplog.db")
	s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	began := written(b)
	var lease journal.Lease
	ref := journal.Ref{Tenant: journal.DefaultTenant, Run: newRunID(b)}
	update(b, s, func(ctx context.Context, tx journal.Tx) error {
		if err := tx.Create(ctx, journal.Run{Ref: ref, Kind: journal.TurnRun}); err != nil {
			return err
		}
		lease, err = tx.Claim(ctx, ref, journal.Worker{Owner: "bench"}, time.Hour)
		return err
	})
	var list journal.Digest
	var state []byte
	tail := max(1, steps/10)
	var t0 time.Time
	var w0, c0 int64
	for n := range steps {
		if n == steps-tail {
			t0, w0, c0 = time.Now(), written(b), s.Stats().Commits
		}
		text := words(n, 2000)
		message, err := json.Marshal(map[string]string{"role": "assistant", "content": text})
		if err != nil {
			b.Fatal(err)
		}
		update(b, s, func(ctx context.Context, tx journal.Tx) (err error) {
			added, err := s.Key().Extend(list, message)
			if err != nil {
				return err
			}
			list = added.List
			say, err := added.Entry()
			if err != nil {
				return err
			}
			_, err = tx.Append(ctx, lease, say, entry(b, "asked", journal.Structure, map[string]any{"attempt": 1, "step": n}))
			return err
		})
		state = append(state, text...)
		update(b, s, func(ctx context.Context, tx journal.Tx) error {
			at, err := tx.Append(ctx, lease,
				entry(b, "answered", journal.Text, map[string]any{"text": text, "tokens": 500}),
				entry(b, "evaluated", journal.Structure, map[string]any{"step": n, "signals": map[string]string{"loop_detect": "ok", "goal_drift": "ok"}}))
			if err != nil {
				return err
			}
			if row, err := tx.Run(ctx, ref); err != nil || !row.SnapshotDue() {
				return err
			}
			return tx.Save(ctx, lease, journal.Snapshot{Seq: at.Seq, Version: 1, State: state})
		})
	}
	c.wall = time.Since(t0) / time.Duration(tail)
	c.written = (written(b) - w0) / int64(tail)
	c.commits = (s.Stats().Commits - c0) / int64(tail)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	c.total = written(b) - began
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	c.file = info.Size()
	return c
}

// words is text of n bytes, of common words in no order: harder to pack than what
// a model writes.
func words(seed, n int) string {
	vocabulary := strings.Fields(`the of and to in is that it was for on are as with his they at be this have from or had by not word
		but what some we can out other were all there when up use your how said an each she which do their time if will way about many
		then them write would like so these her long make thing see him two has look more day could go come did number sound no most
		people my over know water than call first who may down side been now find any new work part take get place made live where`)
	r := mathrand.New(mathrand.NewPCG(uint64(seed), 1))
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteString(vocabulary[r.IntN(len(vocabulary))])
		b.WriteByte(' ')
	}
	return string(b.Bytes()[:n])
}

// written is how many bytes this process has handed to write(2) and its like.
func written(tb testing.TB) int64 {
	io, err := os.ReadFile("/proc/self/io")
	if err != nil {
		tb.Skipf("what a process wrote is read from /proc/self/io: %v", err)
	}
	for line := range bytes.Lines(io) {
		if v, ok := bytes.CutPrefix(line, []byte("wchar: ")); ok {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			return n
		}
	}
	tb.Fatal("/proc/self/io has no wchar")
	return 0
}

func newRunID(tb testing.TB) journal.ID {
	tb.Helper()
	return newID(tb, journal.RunPrefix)
}

func newID(tb testing.TB, p journal.Prefix) journal.ID {
	tb.Helper()
	id, err := journal.NewIDs(time.Now, rand.Reader).New(p)
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

func update(tb testing.TB, s journal.Store, fn func(context.Context, journal.Tx) error) {
	tb.Helper()
	if err := s.Update(tb.Context(), fn); err != nil {
		tb.Fatal(err)
	}
}

func entry(tb testing.TB, kind string, content journal.Content, v any) journal.Entry {
	tb.Helper()
	e, err := journal.NewEntry(kind, 1, content, v)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// BenchmarkRead reads a log of 1,000 events of 2 KB, as a worker does that takes a
// run up; the metric is per event.
func BenchmarkRead(b *testing.B) {
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "stoplog.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const n = 1000
	ref := journal.Ref{Tenant: journal.DefaultTenant, Run: newRunID(b)}
	update(b, s, func(ctx context.Context, tx journal.Tx) error {
		if err := tx.Create(ctx, journal.Run{Ref: ref, Kind: journal.TurnRun}); err != nil {
			return err
		}
		lease, err := tx.Claim(ctx, ref, journal.Worker{Owner: "bench"}, time.Hour)
		for i := range n {
			if _, err := tx.Append(ctx, lease, entry(b, "answered", journal.Text, map[string]any{"text": words(i, 2000)})); err != nil {
				return err
			}
		}
		return err
	})
	for b.Loop() {
		read := 0
		for _, err := range s.Events(b.Context(), ref, 0) {
			if err != nil {
				b.Fatal(err)
			}
			read++
		}
		if read != n {
			b.Fatal(read)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
}
