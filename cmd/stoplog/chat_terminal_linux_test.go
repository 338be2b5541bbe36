package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

// openTerminal makes a terminal, and returns the person's end of it and the
// program's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	var unlocked, number int32
	for request, arg := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
			t.Fatal(errno)
		}
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// dialogue waits for what the program shows, and types.
type dialogue struct {
	t      *testing.T
	person *os.File
	seen   bytes.Buffer
}

// until reads until the program has shown a text, which it had not before.
func (d *dialogue) until(text string) {
	d.t.Helper()
	from := d.seen.Len()
	for b := make([]byte, 1); !strings.Contains(d.seen.String()[from:], text); {
		if _, err := io.ReadFull(d.person, b); err != nil {
			d.t.Fatalf("waiting for %q: %v; seen:\n%s", text, err, d.seen.String())
		}
		d.seen.Write(b)
	}
}

func (d *dialogue) types(text string) {
	d.t.Helper()
	if _, err := io.WriteString(d.person, text); err != nil {
		d.t.Fatal(err)
	}
}

// TestTerminal has a conversation at a real terminal: a message, an approval in
// place, the answer as it comes, and the end.
func TestTerminal(t *testing.T) {
	s := newScene(t, asking)
	person, program := openTerminal(t)
	w := &world{
		stdin: program, stdout: program, voice: voice{program},
		getenv: func(string) string { return "ann" },
		house:  func(*world, string, *sqlite.Store) (house, func() error, error) { return s.house, none, nil },
	}
	ended := make(chan error, 1)
	go func() { ended <- (&chatCommand{journalFlags: s.flags()}).Run(w) }()
	d := &dialogue{t: t, person: person}
	d.until("> ")
	d.types("clean up\n")
	d.until("I will clean up.")
	d.until(`call 1.1 run_command {"argv":["make","clean"]}: held`)
	d.until("stoplog: digest ")
	d.until("approve it? ")
	d.types("y\n")
	d.until("call 1.1 run_command: done: made")
	d.until(`It is \x1b[2Jclean.`)
	d.until("> ")
	d.types("\x04") // the end of input
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(d.seen.String(), "\x1b") {
		t.Errorf("the model wrote to the terminal:\n%q", d.seen.String())
	}
	if len(s.house.runs) != 1 {
		t.Errorf("ran %q", s.house.runs)
	}
}
