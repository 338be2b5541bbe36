package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/run"
)

// TestMain lets the test binary be a process of its own: STOPLOG_TEST_CHILD names
// what it does instead of testing.
func TestMain(m *testing.M) {
	what := os.Getenv("STOPLOG_TEST_CHILD")
	if what == "" {
		os.Exit(m.Run())
	}
	if err := children[what](context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var children = map[string]func(ctx context.Context, args []string) error{
	"start":  childStart,
	"go on":  childGoOn,
	"decide": childDecide,
}

// child is a process of the test's.
type child struct {
	*exec.Cmd
	out, err strings.Builder
}

func spawn(t *testing.T, what string, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.CommandContext(t.Context(), exe, args...)}
	c.Env = append(os.Environ(), "STOPLOG_TEST_CHILD="+what)
	c.Stdout, c.Stderr = &c.out, &c.err
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// killed reports whether the process was killed; it fails the test if it ended in
// another way than well.
func (c *child) killed(t *testing.T) bool {
	t.Helper()
	err := c.Wait()
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Errorf("%v: %v\n%s", c.Args[1:], err, c.err.String())
	}
	return false
}

// lines is an agent whose tool appends a line to a file: an effect that can be
// counted.
func lines(file string) *script {
	sc := &script{answer: steps(
		calls(run.Call{Tool: "append_line", Args: `{"line":"one"}`, Ruling: run.Free}),
		calls(free("read_file"), run.Call{Tool: "append_line", Args: `{"line":"two"}`, Ruling: run.Gated}),
	)}
	sc.call = func(_ context.Context, c engine.ToolCall) engine.ToolResult {
		if c.Tool != "append_line" {
			return engine.ToolResult{Text: "ok"}
		}
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return engine.ToolResult{Text: err.Error(), Failed: true}
		}
		_, err = f.WriteString(c.Args + "\n")
		if err := errors.Join(err, f.Close()); err != nil {
			return engine.ToolResult{Text: err.Error(), Failed: true}
		}
		return engine.ToolResult{Text: "appended"}
	}
	return sc
}

// withEngine has an engine, with short leases so that the test need not wait, on a
// store that dies as kill says.
func withEngine(ctx context.Context, store, file, kill string, fn func(*engine.Engine, *killer) error) error {
	s, err := sqlite.Open(ctx, store, sqlite.Options{})
	if err != nil {
		return err
	}
	k := &killer{Store: s, at: kill}
	e, err := engine.New(engine.Options{Store: k, Agents: lines(file), Host: "here", Lease: 300 * time.Millisecond, Tick: 30 * time.Millisecond})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	err = errors.Join(fn(e, k), e.Close(ctx), s.Close())
	k.later.Wait()
	return err
}

// killer is a store whose process kills itself around an append: "before N" when
// the events up to N, or more, are written and not yet committed, "after N" when
// they are.
type killer struct {
	journal.Store
	at string

	later  sync.WaitGroup
	mu     sync.Mutex
	points []string
}

func (k *killer) point(when string, seq uint64) {
	p := fmt.Sprintf("%s %d", when, seq)
	k.mu.Lock()
	if !slices.Contains(k.points, p) {
		k.points = append(k.points, p)
	}
	k.mu.Unlock()
	var at uint64
	if n, _ := fmt.Sscanf(k.at, when+" %d", &at); n == 1 && seq >= at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it is on its way
	}
}

// around wraps a write; committed is to be called once it is durable.
func (k *killer) around(fn func(context.Context, journal.Tx) error) (wrapped func(context.Context, journal.Tx) error, committed func()) {
	var last uint64
	wrapped = func(ctx context.Context, tx journal.Tx) error {
		return fn(ctx, killerTx{Tx: tx, appended: func(seq uint64) {
			last = seq
			k.point("before", seq)
		}})
	}
	return wrapped, func() {
		if last > 0 {
			k.point("after", last)
		}
	}
}

func (k *killer) Update(ctx context.Context, fn func(context.Context, journal.Tx) error) error {
	wrapped, committed := k.around(fn)
	err := k.Store.Update(ctx, wrapped)
	if err == nil {
		committed()
	}
	return err
}

func (k *killer) Later(fn func(context.Context, journal.Tx) error) *journal.Pending {
	wrapped, committed := k.around(fn)
	p := k.Store.Later(wrapped)
	k.later.Go(func() {
		if <-p.Done(); p.Err() == nil {
			committed()
		}
	})
	return p
}

type killerTx struct {
	journal.Tx
	appended func(seq uint64)
}

func (t killerTx) Append(ctx context.Context, l journal.Lease, entries ...journal.Entry) (journal.Tail, error) {
	tail, err := t.Tx.Append(ctx, l, entries...)
	if err == nil {
		t.appended(tail.Seq)
	}
	return tail, err
}

// childStart STORE FILE KILL starts a run, and goes on with it to its rest; it
// prints the points at which it could have been killed.
func childStart(ctx context.Context, args []string) error {
	var points *[]string
	err := withEngine(ctx, args[0], args[1], args[2], func(e *engine.Engine, k *killer) error {
		points = &k.points
		ref, err := e.Start(ctx, engine.Task{Profile: "default", Starter: "ann", Text: "append two lines"})
		if err != nil {
			return err
		}
		return toRest(ctx, e, k, ref)
	})
	if err != nil {
		return err
	}
	for _, p := range *points {
		fmt.Println(p)
	}
	return nil
}

// childGoOn STORE FILE goes on with the runs that there are, to their rest.
func childGoOn(ctx context.Context, args []string) error {
	return withEngine(ctx, args[0], args[1], "", func(e *engine.Engine, k *killer) error {
		rows, err := k.Runs(ctx, journal.RunQuery{Tenant: journal.DefaultTenant})
		for _, row := range rows {
			err = errors.Join(err, toRest(ctx, e, k, row.Ref))
		}
		return err
	})
}

// toRest approves what the run asks, until it has ended or is in doubt.
func toRest(ctx context.Context, e *engine.Engine, s journal.Store, ref journal.Ref) error {
	for {
		row, err := s.Run(ctx, ref)
		if err != nil || row.Status.Terminal() || row.Status == journal.WaitingDecision {
			return err
		}
		var qs []journal.Question
		if row.Status == journal.WaitingApproval { // and not before: every run of the test does the same
			qs, err = s.Questions(ctx, journal.QuestionQuery{Tenant: ref.Tenant, Run: ref.Run, State: journal.QuestionPending})
			if err != nil {
				return err
			}
		}
		for _, q := range qs {
			_, err := e.Decide(ctx, ref.Tenant, approval.Decision{ID: q.ID, Digest: q.Digest, State: journal.QuestionApproved, By: "bea"})
			if err != nil {
				return err
			}
		}
		wait, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // a status may change without an event
		err = s.Await(wait, ref, row.Tail.Seq)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// A run with two effects and an approval, killed with kill -9 before and after
// each of its appends: it ends, or waits for a person's decision; each effect
// happened at most once, and exactly once if the run says so; the chain is whole.
func TestKilledAtEveryAppend(t *testing.T) {
	dir := t.TempDir()
	whole := spawn(t, "start", filepath.Join(dir, "whole.db"), filepath.Join(dir, "whole.txt"), "")
	if whole.killed(t) {
		t.Fatal("it was killed")
	}
	var points []string
	for sc := bufio.NewScanner(strings.NewReader(whole.out.String())); sc.Scan(); {
		points = append(points, sc.Text())
	}
	t.Logf("%d points: %s", len(points), strings.Join(points, ", "))
	if len(points) < 16 {
		t.Fatalf("only %d points: %v", len(points), points)
	}
	var mu sync.Mutex
	ends := map[journal.Status]int{}
	t.Run("points", func(t *testing.T) {
		for _, p := range points {
			t.Run(p, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				store, file := filepath.Join(dir, "stoplog.db"), filepath.Join(dir, "lines.txt")
				if !spawn(t, "start", store, file, p).killed(t) {
					t.Fatal("it was not killed")
				}
				if spawn(t, "go on", store, file).killed(t) {
					t.Fatal("the one that went on was killed")
				}
				status := wholeAfterKill(t, store, file)
				mu.Lock()
				ends[status]++
				mu.Unlock()
			})
		}
	})
	t.Logf("runs came to %v", ends)
	if ends[journal.Completed] < len(points)/2 || ends[journal.WaitingDecision] == 0 {
		t.Errorf("of %d runs, some came to %v", len(points), ends)
	}
}

// wholeAfterKill checks a store that a process was killed on and another went on with.
func wholeAfterKill(t *testing.T, store, file string) journal.Status {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), path: store}
	w.s = w.open(sqlite.Options{})
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, line := range []string{"one", "two"} {
		if n := strings.Count(string(text), line); n > 1 {
			t.Errorf("the effect %q happened %d times", line, n)
		}
	}
	rows, err := w.s.Runs(t.Context(), journal.RunQuery{Tenant: journal.DefaultTenant})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		return "" // killed before there was one
	}
	s := w.whole(rows[0].Ref)
	done := strings.Count(string(text), "\n")
	switch status := rows[0].Status; {
	case status == journal.Completed && done != 2:
		t.Errorf("it completed, and %d effects happened", done)
	case status != journal.Completed && status != journal.WaitingDecision:
		t.Errorf("it came to %s (%s)", status, rows[0].Reason)
	case status == journal.WaitingDecision && s.Step.Number > 2:
		t.Errorf("it is in doubt in step %d", s.Step.Number)
	}
	return rows[0].Status
}

// childDecide STORE FILE RUN decides the run's question, and resumes it, 50 times
// at once, and prints how often the decision was its own.
func childDecide(ctx context.Context, args []string) error {
	return withEngine(ctx, args[0], args[1], "", func(e *engine.Engine, k *killer) error {
		ref := journal.Ref{Tenant: journal.DefaultTenant, Run: journal.ID(args[2])}
		first, err := decideAtOnce(ctx, e, k, ref)
		if err != nil {
			return err
		}
		fmt.Println(first)
		return toRest(ctx, e, k, ref)
	})
}

// decideAtOnce has 50 goroutines decide and resume a run, and returns how many of
// them were first.
func decideAtOnce(ctx context.Context, e *engine.Engine, s journal.Store, ref journal.Ref) (first int, err error) {
	qs, err := s.Questions(ctx, journal.QuestionQuery{Tenant: ref.Tenant, Run: ref.Run})
	if err != nil || len(qs) != 1 {
		return 0, fmt.Errorf("%d questions: %w", len(qs), err)
	}
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			_, err := e.Decide(ctx, ref.Tenant, approval.Decision{ID: qs[0].ID, Digest: qs[0].Digest, State: journal.QuestionApproved, By: "bea"})
			e.Wake(ctx, ref)
			var decided *journal.DecidedError
			var settled *journal.SettledError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				first++
			case !errors.As(err, &decided) && !errors.As(err, &settled):
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return first, errors.Join(errs...)
}

// 100 goroutines in two processes decide and resume the same approval: one is
// first, and there is one effect.
func TestDecidedByAHundred(t *testing.T) {
	dir := t.TempDir()
	store, file := filepath.Join(dir, "stoplog.db"), filepath.Join(dir, "lines.txt")
	var ref journal.Ref
	err := withEngine(t.Context(), store, file, "", func(e *engine.Engine, k *killer) error {
		var err error
		ref, err = e.Start(t.Context(), engine.Task{Profile: "default", Starter: "ann", Text: "append two lines"})
		if err != nil {
			return err
		}
		for {
			row, err := k.Run(t.Context(), ref)
			if err != nil {
				return err
			}
			if row.Status == journal.WaitingApproval {
				break
			}
			if err := k.Await(t.Context(), ref, row.Tail.Seq); err != nil {
				return err
			}
		}
		other := spawn(t, "decide", store, file, string(ref.Run))
		first, err := decideAtOnce(t.Context(), e, k, ref)
		if err != nil {
			return err
		}
		if other.killed(t) {
			t.Error("the other process was killed")
		}
		var theirs int
		if _, err := fmt.Sscan(other.out.String(), &theirs); err != nil {
			t.Errorf("the other process said %q: %v", other.out.String(), err)
		}
		if first+theirs != 1 {
			t.Errorf("%d were first here and %d there", first, theirs)
		}
		return toRest(t.Context(), e, k, ref)
	})
	if err != nil {
		t.Fatal(err)
	}
	if status := wholeAfterKill(t, store, file); status != journal.Completed {
		t.Errorf("it came to %s", status)
	}
}
