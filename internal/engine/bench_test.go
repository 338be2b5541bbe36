package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/run"
)

// BenchmarkStep is what a step of 2 KB costs beside the model's time and the
// tool's, which are none here: a whole turn a round. Time and commits per step are
// means over the last tenth of its steps, bytes written over all of them. fsync is
// the time of one fdatasync of a page on the same disk in the same run; checkpoint
// is the whole transcript written at each step instead, to a table of the same
// settings.
//
//	go test -run - -bench Step -benchtime 3x ./internal/engine
func BenchmarkStep(b *testing.B) {
	for _, kind := range []string{"read-only", "fenced"} {
		for _, steps := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/steps=%d", kind, steps), func(b *testing.B) {
				var sum cost
				for b.Loop() {
					sum.add(turnOf(b, kind, steps))
				}
				sum.report(b)
			})
		}
	}
	for _, steps := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("checkpoint/steps=%d", steps), func(b *testing.B) {
			var sum cost
			for b.Loop() {
				sum.add(checkpointsOf(b, steps))
			}
			sum.report(b)
		})
	}
}

// cost is per step, but for fsync, total and file.
type cost struct{ wall, cpu, fsync, commits, written, total, file float64 }

func (c *cost) add(d cost) {
	c.wall, c.cpu, c.fsync, c.commits = c.wall+d.wall, c.cpu+d.cpu, c.fsync+d.fsync, c.commits+d.commits
	c.written, c.total, c.file = c.written+d.written, c.total+d.total, c.file+d.file
}

func (c *cost) report(b *testing.B) {
	n := float64(b.N)
	b.ReportMetric(c.wall/n, "wall-µs/step")
	b.ReportMetric(c.cpu/n, "cpu-µs/step")
	b.ReportMetric(c.fsync/n, "fsync-µs")
	b.ReportMetric(c.commits/n, "commits/step")
	b.ReportMetric(c.written/n, "written-B/step")
	b.ReportMetric(c.total/n/1e6, "written-MB")
	b.ReportMetric(c.file/n/1e6, "file-MB")
	b.ReportMetric(0, "ns/op")
}

// meter measures what lies between two moments of a run.
type meter struct {
	at               time.Time
	cpu              time.Duration
	written, commits int64
}

func read(b *testing.B, s *sqlite.Store) meter {
	m := meter{at: time.Now(), cpu: cpuTime(b), written: written(b)}
	if s != nil {
		m.commits = s.Stats().Commits
	}
	return m
}

func (m meter) per(from meter, steps int) cost {
	n := float64(steps)
	return cost{
		wall:    float64(m.at.Sub(from.at).Microseconds()) / n,
		cpu:     float64((m.cpu - from.cpu).Microseconds()) / n,
		commits: float64(m.commits-from.commits) / n,
	}
}

// turnOf advances a turn of so many steps: each answer has 1 KB of text, shown as
// it comes, and a call whose result has another.
func turnOf(b *testing.B, kind string, n int) (c cost) {
	path := filepath.Join(b.TempDir(), "stoplog.db")
	s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	began := read(b, s)
	tail := max(5, n/10)
	var from, to meter
	sc := &script{}
	sc.answer = func(_ context.Context, c engine.ModelCall, show engine.Show) run.Event {
		switch c.Step {
		case n - tail + 1:
			from = read(b, s)
		case n + 1:
			to = read(b, s)
		}
		text := words(2*c.Step, 1000)
		show("choice/0/content", text)
		a := run.Answer{Text: text}
		if c.Step <= n {
			call := free("read_file")
			if kind == "fenced" {
				call = fenced("run_command")
			}
			a.Calls = []run.Call{call}
		}
		return run.ModelAnswered{Answer: a}
	}
	sc.call = func(_ context.Context, c engine.ToolCall) engine.ToolResult {
		return engine.ToolResult{Text: words(2*c.Step+1, 1000)}
	}
	e, err := engine.New(engine.Options{Store: s, Agents: sc})
	if err != nil {
		b.Fatal(err)
	}
	ref, err := e.Start(b.Context(), engine.Task{Profile: "default", Text: "go on", Limits: run.Limits{MaxIterations: n + 1, Timeout: time.Hour}})
	if err != nil {
		b.Fatal(err)
	}
	for {
		r, err := s.Run(b.Context(), ref)
		if err != nil {
			b.Fatal(err)
		}
		if r.Status == journal.Completed {
			break
		}
		if r.Status.Terminal() {
			b.Fatalf("it came to %s (%s)", r.Status, r.Reason)
		}
		if err := s.Await(b.Context(), ref, 1<<40); err != nil { // its end
			b.Fatal(err)
		}
	}
	c = to.per(from, tail)
	if err := errors.Join(e.Close(b.Context()), s.Close()); err != nil {
		b.Fatal(err)
	}
	c.finish(b, path, began, n)
	return c
}

// checkpointsOf writes the whole transcript of as many steps, at each step.
func checkpointsOf(b *testing.B, n int) (c cost) {
	path := filepath.Join(b.TempDir(), "stoplog.db")
	s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	db, err := s.Pool()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE checkpoints (step INTEGER PRIMARY KEY, state BLOB NOT NULL)`); err != nil {
		b.Fatal(err)
	}
	began := read(b, nil)
	tail := max(5, n/10)
	var from meter
	var state []byte
	for step := range n {
		if step == n-tail {
			from = read(b, nil)
		}
		state = append(state, words(step, 2000)...)
		if _, err := db.Exec(`INSERT INTO checkpoints VALUES (?, ?)`, step, state); err != nil {
			b.Fatal(err)
		}
	}
	c = read(b, nil).per(from, tail)
	c.commits = 1
	if err := errors.Join(db.Close(), s.Close()); err != nil {
		b.Fatal(err)
	}
	c.finish(b, path, began, n)
	return c
}

func (c *cost) finish(b *testing.B, path string, began meter, steps int) {
	c.total = float64(written(b) - began.written)
	c.written = c.total / float64(steps)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	c.file = float64(info.Size())
	c.fsync = fsyncTime(b)
}

// words is text of n bytes, of common words in no order: it packs worse than what
// models write.
func words(seed, n int) string {
	vocabulary := strings.Fields(`the of and to in is that it was for on are as with his they at be this have from or had by not word
		but what some we can out other were all there when up use your how said an each she which do their time if will way about many
		then them write would like so these her long make thing see him two has look more day could go come did number sound no most
		people my over know water than call first who may down side been now find any new work part take get place made live where`)
	r := mathrand.New(mathrand.NewPCG(uint64(seed), 1))
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(vocabulary[r.IntN(len(vocabulary))])
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

// written is how many bytes this process has handed to write(2) and its like.
func written(b *testing.B) int64 {
	io, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skipf("what a process wrote is read from /proc/self/io: %v", err)
	}
	for line := range bytes.Lines(io) {
		if v, ok := bytes.CutPrefix(line, []byte("wchar: ")); ok {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatal("/proc/self/io has no wchar")
	return 0
}

// cpuTime is the processor time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fsyncTime is the mean time, in microseconds, to append a page to a file and have
// it on the disk.
func fsyncTime(b *testing.B) float64 {
	f, err := os.Create(filepath.Join(b.TempDir(), "page"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	const n = 50
	page := make([]byte, 1024)
	began := time.Now()
	for range n {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(began).Microseconds()) / n
}
