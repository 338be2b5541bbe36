package sandbox

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// Scope is what a program may do, as an author writes it. Its patterns are
// relative to Root and never lead out of it: `*` and `?` stay inside a segment,
// `**` stands for any number of segments. The zero Scope, with a Root, may do
// nothing but run.
type Scope struct {
	// Root is an absolute directory. Symbolic links in it are resolved.
	Root string
	// Read and Write are patterns of files.
	Read, Write []string
	// Run are the programs that may be executed: a pattern (with a slash), an
	// absolute path, or a name that is looked up in the PATH of the program's
	// environment. A script's interpreter comes with it.
	Run []string
	// Hosts are the `HOST:PORT` that may be reached, through a proxy that speaks
	// CONNECT; it is named in HTTPS_PROXY and HTTP_PROXY. None: no network.
	Hosts []string
}

// Spec is a program to run.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked up
	// in PATH of Env. The program itself may always be run.
	Argv []string
	// Dir is the working directory; empty is Scope.Root. It may be read only if
	// the scope says so.
	Dir string
	// Env is the whole environment, `NAME=value`. HOME and TMPDIR are added
	// where they are missing, and lead to directories that are thrown away.
	Env   []string
	Scope Scope
	// Read, Write and Run are absolute paths that the caller itself grants, each
	// a file or a whole directory, beside the author's scope. What is missing is
	// left out. They are not bound to Scope.Root; the deny list holds for them.
	Read, Write, Run []string
	// Deny are absolute paths to deny beside those of [Denied]: the state
	// directory, for one.
	Deny []string
	// Services are what the program can connect to.
	Services []Service
	// Dial connects to one of Scope.Hosts. It is needed where there are any.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Stdin is what the program reads; nil is nothing. It should not block for
	// ever once the program is gone.
	Stdin io.Reader
	// Stdout and Stderr get what the program writes; nil drops it. Where both are
	// the same value it gets both in the order in which they are written, and is
	// used by one goroutine at a time.
	Stdout, Stderr io.Writer
	Limits         Limits

	// as is what the program is called, where that is not Argv[0].
	as string
}

// Service is something to connect to inside of the sandbox: a listener on
// 127.0.0.1, in the sandbox's own network, that the host serves.
type Service struct {
	// Port is where it listens; inside, every port is free.
	Port uint16
	// Serve takes the connections. It returns once the listener is closed, which
	// it is when the program has ended; Wait waits for it.
	Serve func(net.Listener)
}

// Limits of a program; the zero value has the defaults.
type Limits struct {
	// Wall is how long the program may take; 0 is until the context ends.
	Wall time.Duration
	// CPU is how much processor time one process may use; 0 is no limit.
	CPU time.Duration
	// Output is how many bytes the program may write to its two streams together
	// before it is ended; 0 is 64 MiB.
	Output int64
	// FileSize is the largest file that may be written, in bytes; 0 is 1 GiB.
	FileSize uint64
	// Files is how many files one process may have open; 0 is 4,096.
	Files uint64
	// Processes is how many processes and threads there may be; 0 is 1,024.
	// Root is held to it only where the kernel counts by PID namespace (Linux
	// 6.14), and to no less than 301.
	Processes uint64
	// Memory is how much address space one process may have, in bytes; 0 is no
	// limit: runtimes such as Go's and JavaScript's reserve far more than they use.
	Memory uint64
}

// Result is how a program ended.
type Result struct {
	End End
	// Exit is the exit code, if End is Exited.
	Exit int
	// Signal is the number of the signal that ended it, if End is Signalled.
	Signal int
	// Left is how many other processes were still there when the program itself
	// had ended. They are gone now.
	Left int
	// Output is how many bytes the program wrote to its two streams.
	Output int64
	// Wall is how long it took.
	Wall time.Duration
}

// Passed reports whether the program exited with 0 and left nothing running.
func (r Result) Passed() bool { return r.End == Exited && r.Exit == 0 && r.Left == 0 }

// End says which way a program ended.
type End uint8

const (
	Lost      End = iota // nobody knows: the warden was ended from outside, or by the program
	Exited               // by itself
	Signalled            // by a signal that was not ours
	TimedOut             // Limits.Wall was over
	Flooded              // it wrote more than Limits.Output
	Cancelled            // the context ended
	Killed               // by Process.Kill
)

var ends = [...]string{"lost", "exited", "signalled", "timed out", "flooded", "cancelled", "killed"}

func (e End) String() string {
	if int(e) < len(ends) {
		return ends[e]
	}
	return fmt.Sprintf("end(%d)", uint8(e))
}

// RefusedError says that a program was not started because a part of the sandbox
// can not hold.
type RefusedError struct {
	// Part is what can not hold: one of the names of a [Report], or "scope".
	Part string
	Err  error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused to run without the sandbox's %s: %v", e.Part, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Run starts a program and waits for its end. The error is that of [Start].
func Run(ctx context.Context, s Spec) (Result, error) {
	p, err := Start(ctx, s)
	if err != nil {
		return Result{}, err
	}
	return p.Wait(), nil
}
