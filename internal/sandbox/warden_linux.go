package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Main makes a process that [Start] began what it is to be, and does not return
// then. In any other process it does nothing. It is the first thing that main,
// or a TestMain, calls.
func Main() {
	begins.Store(true)
	switch os.Args[0] {
	case wardenName:
		os.Exit(warden())
	case programName:
		os.Exit(becomeProgram())
	case probeName:
		os.Exit(probe(os.Args[1:]))
	}
}

// begins says that this process begins with Main, so that it can be started again
// as another.
var begins atomic.Bool

// grace is how long other processes may take to end by themselves once the
// program has.
const grace = 250 * time.Millisecond

// warden is process 1 of the sandbox: it builds it, starts the program, reaps
// whatever ends, and tells how the program did. When it returns everything ends.
func warden() int {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "this is a part of Stoplog's sandbox, and is started by it alone")
		return 1
	}
	o, err := readOrder()
	if err != nil {
		return 1 // there is nobody to tell
	}
	host, err := openChannel(os.NewFile(reportFile, "report"))
	if err != nil {
		return 1
	}
	go func() {
		host.hear() // the host says nothing: this returns when it is gone
		os.Exit(1)
	}()
	pid, err := build(o, host)
	if err != nil {
		host.say(refused(err))
		return 1
	}
	if err := host.say(report{Started: true}); err != nil {
		return 1
	}
	if err := host.say(report{Ended: await(pid)}); err != nil {
		return 1
	}
	return 0
}

// build makes the sandbox around this process and starts the program in it.
func build(o order, host channel) (pid int, err error) {
	if err := arrangeFiles(o); err != nil {
		return 0, err
	}
	if err := arrangeProcesses(o.Limits); err != nil {
		return 0, err
	}
	listeners, err := arrangeNetwork(o.Ports)
	if err != nil {
		return 0, err
	}
	if err := host.say(report{Listening: true}, listeners...); err != nil {
		return 0, fmt.Errorf("hand over the sandbox's sockets: %w", err)
	}
	for _, fd := range listeners {
		unix.Close(fd)
	}
	return startProgram(o)
}

// startProgram begins the program's process and waits until it has become what
// it is to be.
func startProgram(o order) (int, error) {
	orders, give, err := o.pipe()
	if err != nil {
		return 0, err
	}
	said, saying, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make a pipe to the program: %w", err)
	}
	defer said.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{programName}, &os.ProcAttr{
		Env:   []string{},
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, orders, saying},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	saying.Close()
	orders.Close()
	give() // at once an error if there is nobody
	if err != nil {
		return 0, fmt.Errorf("start the program's process: %w", err)
	}
	var r report
	err = json.NewDecoder(said).Decode(&r) // nothing comes once the program runs
	switch {
	case errors.Is(err, io.EOF):
		return p.Pid, nil
	case err != nil:
		return 0, fmt.Errorf("hear of the program's process: %w", err)
	case r.Refused != nil:
		return 0, r.Refused.err()
	}
	return 0, errors.New("hear of the program's process: it said nothing that is known")
}

// await reaps until the program has ended and, for a moment, until the rest has.
func await(program int) *ending {
	e := &ending{}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return nil // can not be: the program is a child until it is reaped
		}
		if pid != program {
			continue
		}
		e.Exit = status.ExitStatus()
		if status.Signaled() {
			e.Signal = int(status.Signal())
		}
		break
	}
	for end := time.Now().Add(grace); ; {
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
		if e.Left = others(); e.Left == 0 || time.Now().After(end) {
			return e
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// others counts the processes of the namespace that run, less the warden.
func others() int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 1 // nobody knows that there is none
	}
	n := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == 1 {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name is in parentheses, and may hold some.
		if i := strings.LastIndexByte(string(stat), ')'); i < 0 || !strings.HasPrefix(string(stat[i+1:]), " Z") {
			n++
		}
	}
	return n
}
