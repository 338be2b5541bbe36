package cassette

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// TestDiskFull: a recording for which there is no room leaves nothing behind.
// There is none past the limit of a file's size.
func TestDiskFull(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	s := newStudio(t, scrubChain(t, guard.Options{}))
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	got, err := s.hear(t, says(200, eventStream, strings.NewReader(done)), hello)
	s.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if got != done || err != nil {
		t.Errorf("the answer is %q, %v", got, err)
	}
	if len(s.said) != 1 || !strings.Contains(s.said[0], "file too large") {
		t.Errorf("said %q", s.said)
	}
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
