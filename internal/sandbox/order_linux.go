package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// The processes of a sandbox know what they are by their name.
const (
	wardenName  = "stoplog-sandbox-warden"
	programName = "stoplog-sandbox-program"
)

// The files that they are started with, beside the three streams.
const (
	orderFile  = 3 // an order, as JSON
	reportFile = 4 // the warden's socket to the host; the program's pipe to the warden
)

// order is what the warden and the program are told.
type order struct {
	Program string
	Argv    []string
	Env     []string
	Dir     string
	Grants  []Grant
	Covered []string
	Ports   []uint16
	Limits  Limits
}

// report is what the warden tells the host, and the program the warden: one of
// its members is set. With listening come the sockets of the services.
type report struct {
	Refused   *refusal
	Listening bool
	Started   bool
	Ended     *ending
}

type refusal struct{ Part, Err string }

type ending struct {
	Exit   int // −1 if a signal ended it
	Signal int
	Left   int
}

// refuse is an error of a part.
func refuse(part string, err error) *RefusedError { return &RefusedError{part, err} }

// refused puts an error into a report.
func refused(err error) report {
	var r *RefusedError
	if !errors.As(err, &r) {
		r = refuse("start", err)
	}
	return report{Refused: &refusal{r.Part, r.Err.Error()}}
}

func (r refusal) err() error { return refuse(r.Part, errors.New(r.Err)) }

// readOrder reads the order that this process was started with.
func readOrder() (order, error) {
	// Whatever else is open here was left open by whoever started the host.
	if err := unix.CloseRange(orderFile, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return order{}, fmt.Errorf("close what was left open: %w", err)
	}
	f := os.NewFile(orderFile, "order")
	defer f.Close()
	var o order
	if err := json.NewDecoder(f).Decode(&o); err != nil {
		return order{}, fmt.Errorf("read the sandbox's order: %w", err)
	}
	return o, nil
}

// pipe is the order as a file to be read once. Whoever is given it to start a
// process with closes it then; give writes it, and returns when it was read or its
// reader is gone.
func (o order) pipe() (from *os.File, give func(), err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, nil, fmt.Errorf("write down the sandbox's order: %w", err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	return from, func() {
		to.Write(text) // a reader that is gone has said why, or is missed
		to.Close()
	}, nil
}

// channel is a socket that keeps messages apart and carries open files.
type channel struct{ conn *net.UnixConn }

// channels makes both ends: one for this process, one to hand on.
func channels() (channel, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return channel{}, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "report")
	ours, err := openChannel(os.NewFile(uintptr(pair[0]), "report"))
	if err != nil {
		theirs.Close()
		return channel{}, nil, err
	}
	return ours, theirs, nil
}

// openChannel makes a channel of a socket, and closes the file.
func openChannel(f *os.File) (channel, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return channel{}, fmt.Errorf("open a socket of the sandbox: %w", err)
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return channel{}, errors.New("open a socket of the sandbox: it is of another kind")
	}
	return channel{unixConn}, nil
}

// say sends a report, with open files.
func (c channel) say(r report, files ...int) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	_, _, err = c.conn.WriteMsgUnix(text, rights, nil)
	return err
}

// mostServices is how many sockets fit into one message.
const mostServices = 64

// hear receives a report, and the files that come with it.
func (c channel) hear() (report, []*os.File, error) {
	text, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*mostServices))
	n, rn, _, _, err := c.conn.ReadMsgUnix(text, rights)
	if err != nil {
		return report{}, nil, err
	}
	if n == 0 {
		return report{}, nil, io.EOF
	}
	var r report
	if err := json.Unmarshal(text[:n], &r); err != nil {
		return report{}, nil, fmt.Errorf("read a report of the sandbox: %w", err)
	}
	if rn == 0 {
		return r, nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights[:rn])
	if err != nil {
		return report{}, nil, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return report{}, nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "listener"))
		}
	}
	return r, files, nil
}
