package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestGuardMemoryIsFlat: after 100 MB the program has at most 8 MB more than
// after 10 MB, with findings in the text and a report of them.
func TestGuardMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("filters 100 MB")
	}
	const mega = 1 << 20
	line := "The quick brown fox jumps over the lazy dog; mail ann@example.com or call 10.1.2.3 at 12:45, then go on and on.\n"
	for _, format := range []string{"text", "ndjson"} {
		t.Run(format, func(t *testing.T) {
			in := line
			if format == "ndjson" {
				in = `{"text":` + strconv.Quote(line) + "}\n"
			}
			cmd := exec.Command(binary, "guard", "--format", format, "--report", os.DevNull)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })

			// A program that held back more than the last few lines would have
			// this test wait for ever.
			if err := stdout.(*os.File).SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(stdout)
			// through has the program filter lines until n bytes have gone in, and
			// all but the last few have come out.
			fed := 0
			through := func(n int) {
				lines := (n - fed) / len(in)
				fed = n
				sent := make(chan error, 1)
				go func() {
					w := bufio.NewWriterSize(stdin, pieceSize)
					for range lines {
						w.WriteString(in)
					}
					sent <- w.Flush()
				}()
				for i := range lines - 10 {
					if _, err := out.ReadSlice('\n'); err != nil {
						t.Fatalf("%d lines went in, %d came out: %v", lines, i, err)
					}
				}
				if err := <-sent; err != nil {
					t.Fatal(err)
				}
			}
			through(10 * mega)
			after10 := resident(t, cmd.Process.Pid)
			through(100 * mega)
			after100 := resident(t, cmd.Process.Pid)
			t.Logf("resident after 10 MB: %d KiB, after 100 MB: %d KiB", after10>>10, after100>>10)
			if after100 > after10+8*mega {
				t.Errorf("grew by %d KiB, want at most 8 MiB", (after100-after10)>>10)
			}

			stdin.Close()
			if _, err := io.Copy(io.Discard, out); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

var vmRSS = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// resident is how many bytes of a process are in memory.
func resident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := vmRSS.FindSubmatch(status)
	if m == nil {
		t.Fatalf("no VmRSS in %s", status)
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestGuardClosedStdout: who reads on has gone, so the program ends as any
// filter does, by SIGPIPE.
func TestGuardClosedStdout(t *testing.T) {
	for _, format := range []string{"text", "ndjson"} {
		t.Run(format, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(binary, "guard", "--format", format)
			cmd.Stdout = w
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
			w.Close()
			r.Close()
			if _, err := io.WriteString(stdin, `{"text":"some words"}`+"\n"); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			err = cmd.Wait()
			if !errors.As(err, &exit) {
				t.Fatalf("ended with %v, want SIGPIPE", err)
			}
			status := exit.Sys().(syscall.WaitStatus)
			if !status.Signaled() || status.Signal() != syscall.SIGPIPE {
				t.Errorf("ended with %v, want SIGPIPE", exit)
			}
		})
	}
}
