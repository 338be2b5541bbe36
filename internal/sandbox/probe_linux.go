package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// probeName is what the program of a check is called.
const probeName = "stoplog-sandbox-probe"

// probe is the program of a check: inside of a sandbox it does what must be
// refused, and says whether it was. Its arguments are a file outside of its scope
// and an address of the host.
func probe(args []string) int {
	if len(args) == 0 {
		signal.Ignore()
		select {} // the process that is left behind
	}
	if len(args) != 2 || os.Getpid() == 1 {
		return 1
	}
	file, address := args[0], args[1]
	found := []Part{
		{partNamespaces, os.Getppid() == 1, fmt.Sprintf("started by process %d", os.Getppid())},
		mustRefuse(partMounts, "change the mode of a file outside", unix.Chmod(file, 0o644), unix.EROFS),
		mustRefuse(partProc, "look into the sandbox's first process", look("/proc/1/root"), unix.EACCES, unix.EPERM),
		mustRefuse(partNetwork, "connect to a port of the host", connect(address), unix.ECONNREFUSED, unix.ENETUNREACH),
		bounds(partProcesses, "processes", unix.RLIMIT_NPROC),
		bounds(partLimits, "open files", unix.RLIMIT_NOFILE),
		capabilities(),
		mustRefuse(partLandlock, fmt.Sprintf("version %d: read a file outside", landlockABI()), look(file), unix.EACCES),
		mustRefuse(partLandlock, "execute a program that the scope does not name", executed(), unix.EACCES),
		mustRefuse(partSeccomp, "trace a process", traced(), unix.EPERM),
		mustRefuse(partSeccomp, "open a unix socket", socket(unix.AF_UNIX), unix.EPERM),
	}
	if linger() != nil || json.NewEncoder(os.Stdout).Encode(found) != nil {
		return 1
	}
	return 0
}

// mustRefuse is a part that must refuse something with one of these errors.
func mustRefuse(part, what string, err error, want ...error) Part {
	for _, w := range want {
		if errors.Is(err, w) {
			return Part{part, true, fmt.Sprintf("%s: %v", what, w)}
		}
	}
	if err == nil {
		err = errors.New("it was not refused")
	}
	return Part{part, false, fmt.Sprintf("%s: %v", what, err)}
}

// bounds is a part that must have a limit.
func bounds(part, what string, kind int) Part {
	var l unix.Rlimit
	if err := unix.Getrlimit(kind, &l); err != nil {
		return Part{part, false, err.Error()}
	}
	return Part{part, l.Max != unix.RLIM_INFINITY, fmt.Sprintf("%s: at most %d", what, l.Max)}
}

// capabilities must be none, or the one that root keeps.
func capabilities() Part {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return Part{partCapabilities, false, err.Error()}
	}
	left := data[0].Permitted &^ (1 << unix.CAP_DAC_OVERRIDE)
	kept := "none"
	if data[0].Permitted != 0 {
		kept = "to read and write files of others, in the scope"
	}
	return Part{partCapabilities, left|data[1].Permitted == 0, "kept: " + kept}
}

func look(path string) error {
	if f, err := os.Open(path); err != nil {
		return err
	} else {
		return f.Close()
	}
}

func connect(address string) error {
	port := address[strings.LastIndexByte(address, ':')+1:]
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Port: n, Addr: [4]byte(net.ParseIP("127.0.0.1").To4())})
}

func executed() error {
	for _, program := range []string{"/bin/sh", "/bin/true", "/bin/ls"} {
		if _, err := os.Stat(program); err == nil {
			return exec.Command(program).Run()
		}
	}
	return errors.New("there is no program to try it with")
}

func traced() error {
	_, _, errno := unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)
	if errno == 0 {
		return nil
	}
	return errno
}

func socket(family int) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// linger leaves a process behind, in a session of its own, that holds standard
// output open.
func linger() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := &exec.Cmd{Path: self, Args: []string{probeName}, Stdout: os.Stdout, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	return c.Start()
}
