package flow_test

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

	"go.uber.org/goleak"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/sandbox"
	"github.com/stoplog/stoplog/internal/signal"
)

// TestMain lets the test binary be a process of its own: STOPLOG_TEST_CHILD names
// what it does instead of testing.
func TestMain(m *testing.M) {
	var err error
	switch what := os.Getenv("STOPLOG_TEST_CHILD"); what {
	case "":
		goleak.VerifyTestMain(m)
	case "start":
		err = childStart(context.Background(), os.Args[1], os.Args[2], os.Args[3])
	case "go on":
		err = childGoOn(context.Background(), os.Args[1], os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// writing is a playbook with effects that can be counted, a pause, a part, and a
// step that is safe to repeat.
const writing = `
-- pb.yaml --
playbook: writing
steps:
  - {id: look, type: run, run: look, effect: read}
  - {id: one, type: run, run: append one}
  - {id: confirm, type: pause, reason: go on}
  - {id: part, type: playbook, playbook: part.yaml}
  - {id: three, type: run, run: append three, effect: irreversible}
-- part.yaml --
playbook: part
steps:
  - {id: two, type: run, run: append two}
`

// appending runs the programs of that playbook: append adds a line to a file.
func appending(file string) func(context.Context, sandbox.Spec) (sandbox.Result, error) {
	return func(_ context.Context, s sandbox.Spec) (sandbox.Result, error) {
		if s.Argv[0] != "append" {
			return sandbox.Result{End: sandbox.Exited}, nil
		}
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return sandbox.Result{}, err
		}
		_, err = f.WriteString(s.Argv[1] + "\n")
		return sandbox.Result{End: sandbox.Exited}, errors.Join(err, f.Close())
	}
}

type allWell struct{}

func (allWell) Evaluate(context.Context, signal.History) signal.Evaluation {
	return signal.Evaluation{}
}

// withHost has a host, with short leases so that the test need not wait, on a store
// that dies as kill says.
func withHost(ctx context.Context, store, file, kill string, fn func(host, *killer) error) error {
	s, err := sqlite.Open(ctx, store, sqlite.Options{})
	if err != nil {
		return err
	}
	k := &killer{Store: s, at: kill}
	h, err := flow.New(flow.Options{
		Store: k, Run: appending(file), Judge: &world{},
		Profiles: func(string) (flow.Profile, error) { return flow.Profile{Name: "default", Evaluator: allWell{}}, nil },
	})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	e, err := engine.New(engine.Options{
		Store: k, Agents: &turns{}, Others: map[journal.RunKind]engine.Other{journal.PlaybookRun: h}, Host: "here",
		Lease: 300 * time.Millisecond, Tick: 30 * time.Millisecond,
	})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	h.Attach(e)
	err = errors.Join(fn(host{h, e}, k), e.Close(ctx), s.Close())
	k.later.Wait()
	return err
}

// killer is a store whose process kills itself around an append: "before N" when
// the N-th append of the process is written and not yet committed, "after N" when
// it is.
type killer struct {
	journal.Store
	at string

	later   sync.WaitGroup
	mu      sync.Mutex
	appends int
	points  []string
}

func (k *killer) point(when string, n int) {
	p := fmt.Sprintf("%s %d", when, n)
	k.mu.Lock()
	if !slices.Contains(k.points, p) {
		k.points = append(k.points, p)
	}
	k.mu.Unlock()
	if k.at == p {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it is on its way
	}
}

// around wraps a write; committed is to be called once it is durable.
func (k *killer) around(fn func(context.Context, journal.Tx) error) (wrapped func(context.Context, journal.Tx) error, committed func()) {
	n := 0
	wrapped = func(ctx context.Context, tx journal.Tx) error {
		return fn(ctx, killerTx{Tx: tx, appended: func() {
			k.mu.Lock()
			k.appends++
			n = k.appends
			k.mu.Unlock()
			k.point("before", n)
		}})
	}
	return wrapped, func() {
		if n > 0 {
			k.point("after", n)
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
	appended func()
}

func (t killerTx) Append(ctx context.Context, l journal.Lease, entries ...journal.Entry) (journal.Tail, error) {
	tail, err := t.Tx.Append(ctx, l, entries...)
	if err == nil {
		t.appended()
	}
	return tail, err
}

// childStart starts a run, and goes on with it to its rest; it prints the points at
// which it could have been killed.
func childStart(ctx context.Context, store, file, kill string) error {
	var points []string
	err := withHost(ctx, store, file, kill, func(h host, k *killer) error {
		ref, err := h.Start(ctx, flow.Request{Starter: "ann", Root: "/work", Tree: tree(writing), File: "pb.yaml"})
		if err == nil {
			err = toRest(ctx, h, k, ref)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		points = slices.Clone(k.points)
		return err
	})
	for _, p := range points {
		fmt.Println(p)
	}
	return err
}

// childGoOn goes on with the runs that there are, to their rest.
func childGoOn(ctx context.Context, store, file string) error {
	return withHost(ctx, store, file, "", func(h host, k *killer) error {
		rows, err := k.Runs(ctx, journal.RunQuery{Tenant: journal.DefaultTenant})
		for _, row := range rows {
			if row.Parent == "" {
				err = errors.Join(err, toRest(ctx, h, k, row.Ref))
			}
		}
		return err
	})
}

// toRest approves what the run asks, until it has ended or is in doubt.
func toRest(ctx context.Context, h host, s journal.Store, ref journal.Ref) error {
	for {
		row, err := s.Run(ctx, ref)
		if err != nil || row.Status.Terminal() || row.Status == journal.WaitingDecision {
			return err
		}
		if row.Status == journal.WaitingApproval {
			qs, err := s.Questions(ctx, journal.QuestionQuery{Tenant: ref.Tenant, Run: ref.Run, State: journal.QuestionPending})
			if err != nil {
				return err
			}
			for _, q := range qs {
				_, err := h.engine.Decide(ctx, ref.Tenant, approval.Decision{ID: q.ID, Digest: q.Digest, State: journal.QuestionApproved, By: "bea"})
				if err != nil {
					return err
				}
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

// spawn runs the test binary as a process of its own, and reports whether it was
// killed, and what it printed.
func spawn(t *testing.T, what string, args ...string) (killed bool, out string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Env = append(os.Environ(), "STOPLOG_TEST_CHILD="+what)
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	err = c.Run()
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return true, stdout.String()
	}
	if err != nil {
		t.Errorf("%s %v: %v\n%s", what, args, err, stderr.String())
	}
	return false, stdout.String()
}

// A playbook with three effects, a pause and a part of its own, killed with kill -9
// before and after each of its appends: it ends, or waits for a person who is to say
// how a step ended; each effect happened at most once, and exactly once if the run
// says so; the chain is whole.
func TestKilledAtEveryAppend(t *testing.T) {
	dir := t.TempDir()
	killed, out := spawn(t, "start", filepath.Join(dir, "whole.db"), filepath.Join(dir, "whole.txt"), "")
	if killed {
		t.Fatal("it was killed")
	}
	var points []string
	for sc := bufio.NewScanner(strings.NewReader(out)); sc.Scan(); {
		points = append(points, sc.Text())
	}
	t.Logf("%d points: %s", len(points), strings.Join(points, ", "))
	if len(points) < 16 {
		t.Fatalf("only %d points", len(points))
	}
	var mu sync.Mutex
	ends := map[journal.Status]int{}
	t.Run("points", func(t *testing.T) {
		for _, p := range points {
			t.Run(p, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				store, file := filepath.Join(dir, "stoplog.db"), filepath.Join(dir, "lines.txt")
				if killed, _ := spawn(t, "start", store, file, p); !killed {
					return // writes were grouped otherwise this time: there was no such point
				}
				if killed, _ := spawn(t, "go on", store, file); killed {
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
	s, err := sqlite.Open(t.Context(), store, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, line := range []string{"one", "two", "three"} {
		if n := strings.Count(string(text), line); n > 1 {
			t.Errorf("the effect %q happened %d times", line, n)
		}
	}
	rows, err := s.Runs(t.Context(), journal.RunQuery{Tenant: journal.DefaultTenant})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		return "" // killed before there was one
	}
	outer := rows[len(rows)-1]
	for _, row := range rows {
		if rep, err := journal.Verify(t.Context(), s, row.Ref, journal.Link{}); err != nil || rep.Broken != nil {
			t.Errorf("the chain of %s: %v, %v", row.Run, rep.Broken, err)
		}
		if row.Parent != "" && row.Parent != outer.Run {
			t.Errorf("run %s is a part of %s", row.Run, row.Parent)
		}
	}
	if len(rows) > 2 {
		t.Errorf("the part was made %d times", len(rows)-1)
	}
	switch done := strings.Count(string(text), "\n"); {
	case outer.Status == journal.Completed && done != 3:
		t.Errorf("it completed, and %d effects happened", done)
	case outer.Status != journal.Completed && outer.Status != journal.WaitingDecision:
		t.Errorf("it came to %s (%s)", outer.Status, outer.Reason)
	}
	return outer.Status
}
