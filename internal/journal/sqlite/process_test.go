package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

// TestMain lets the test binary be a process of its own: STOPLOG_TEST_CHILD names
// what it does instead of testing, its arguments to what.
func TestMain(m *testing.M) {
	if what := os.Getenv("STOPLOG_TEST_CHILD"); what != "" {
		if err := children[what](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var children = map[string]func(args []string) error{
	// write STORE RUN FENCE N appends N events to a run, and prints each number
	// once it is durable.
	"write": func(args []string) error {
		return withStore(args[0], func(ctx context.Context, s *sqlite.Store) error {
			fence, err := strconv.ParseUint(args[2], 10, 64)
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(args[3])
			if err != nil {
				return err
			}
			l := journal.Lease{Ref: journal.Ref{Tenant: journal.DefaultTenant, Run: journal.ID(args[1])}, Fence: fence}
			for range n {
				var tail journal.Tail
				err := s.Update(ctx, func(ctx context.Context, tx journal.Tx) (err error) {
					e, err := journal.NewEntry("text", 1, journal.Text, map[string]string{"text": words(n, 1500)})
					if err != nil {
						return err
					}
					tail, err = tx.Append(ctx, l, e)
					return err
				})
				if err != nil {
					return err
				}
				fmt.Println(tail.Seq)
			}
			return nil
		})
	},
	// key STORE opens the store and prints its key.
	"key": func(args []string) error {
		return withStore(args[0], func(_ context.Context, s *sqlite.Store) error {
			_, err := fmt.Printf("%x\n", s.Key())
			return err
		})
	},
}

func withStore(path string, fn func(context.Context, *sqlite.Store) error) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	return errors.Join(fn(ctx, s), s.Close())
}

// child is a process of the test's, its output to be read by line.
type child struct {
	*exec.Cmd
	lines *bufio.Scanner
	said  *strings.Builder // on stderr
}

func start(t *testing.T, what string, args ...string) child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := child{Cmd: exec.CommandContext(t.Context(), exe, args...), said: new(strings.Builder)}
	c.Env = append(os.Environ(), "STOPLOG_TEST_CHILD="+what)
	c.Stderr = c.said
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// Several processes append to runs of their own in one file, one of them kill -9'd
// in the middle: what each was told is durable is there, and every chain is whole.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	s := open(t, path)
	const writers, each = 4, 150
	var kids []child
	var leases []journal.Lease
	const victim = 0 // which would write for ever
	for i := range writers {
		l := leased(t, s)
		leases = append(leases, l)
		n := each
		if i == victim {
			n = 1 << 30
		}
		kids = append(kids, start(t, "write", path, string(l.Run), fmt.Sprint(l.Fence), fmt.Sprint(n)))
	}
	told := make([]uint64, writers)
	for kids[victim].lines.Scan() {
		if told[victim]++; told[victim] == each/3 {
			if err := kids[victim].Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, kid := range kids {
		for kid.lines.Scan() {
			told[i]++
		}
		if err := kid.Wait(); (err != nil) != (i == victim) {
			t.Errorf("writer %d: %v %s", i, err, kid.said)
		}
	}
	for i, l := range leases {
		rep, err := journal.Verify(t.Context(), s, l.Ref, journal.Link{})
		if err != nil || rep.Broken != nil {
			t.Errorf("writer %d: %v, %v", i, rep.Broken, err)
		}
		if rep.Events < told[i] || i != victim && rep.Events != each {
			t.Errorf("writer %d was told of %d events, and there are %d", i, told[i], rep.Events)
		}
	}
	if told[victim] < each/3 {
		t.Errorf("the one that was killed had written %d", told[victim])
	}
}

// Processes that open a store at once, the first time, have the same store.
func TestFirstOpening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	var kids []child
	for range 6 {
		kids = append(kids, start(t, "key", path))
	}
	keys := map[string]bool{}
	for _, kid := range kids {
		for kid.lines.Scan() {
			keys[kid.lines.Text()] = true
		}
		if err := kid.Wait(); err != nil {
			t.Errorf("%v: %s", err, kid.said)
		}
	}
	if len(keys) != 1 {
		t.Errorf("keys %v", keys)
	}
}

// A lease that another process has taken over is good for nothing here.
func TestFenceBetweenProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stoplog.db")
	s := open(t, path)
	l := leased(t, s)
	update(t, s, func(ctx context.Context, tx journal.Tx) error {
		return tx.SetStatus(ctx, l, journal.Change{Status: journal.Queued})
	})
	update(t, s, func(ctx context.Context, tx journal.Tx) error {
		_, err := tx.Claim(ctx, l.Ref, journal.Worker{Owner: "other"}, time.Hour)
		return err
	})
	kid := start(t, "write", path, string(l.Run), fmt.Sprint(l.Fence), "1")
	for kid.lines.Scan() {
		t.Errorf("it wrote %s", kid.lines.Text())
	}
	if err := kid.Wait(); err == nil || !strings.Contains(kid.said.String(), journal.ErrFenced.Error()) {
		t.Errorf("it ended with %v: %s", err, kid.said)
	}
}
