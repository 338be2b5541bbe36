package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attackerName is what the test's own program is called where it attacks.
const attackerName = "stoplog-sandbox-attacker"

// attacks are what the attacker can do. Each gets one argument and returns what
// the kernel made of it.
var attacks = map[string]func(string) error{
	"read":        look,
	"list":        func(dir string) error { _, err := os.ReadDir(dir); return err },
	"readlink":    func(name string) error { _, err := os.Readlink(name); return err },
	"write":       func(name string) error { return touch(name, os.O_WRONLY) },
	"create":      func(name string) error { return touch(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL) },
	"truncate":    func(name string) error { return os.Truncate(name, 0) },
	"remove":      os.Remove,
	"mkdir":       func(name string) error { return os.Mkdir(name, 0o755) },
	"chmod":       func(name string) error { return os.Chmod(name, 0o777) },
	"chown":       func(name string) error { return os.Chown(name, os.Getuid(), os.Getgid()) },
	"setxattr":    func(name string) error { return unix.Setxattr(name, "user.x", []byte("y"), 0) },
	"utimes":      func(name string) error { return unix.Utimes(name, make([]unix.Timeval, 2)) },
	"setuid":      func(name string) error { return unix.Chmod(name, 0o4755) },
	"setuid-at":   func(name string) error { return unix.Fchmodat(unix.AT_FDCWD, name, 0o2755, 0) },
	"setuid-open": func(name string) error { return touchMode(name, 0o4755) },
	"link-out":    func(name string) error { return os.Link(name, "out/link") },
	"rename-out":  func(name string) error { return os.Rename(name, "out/renamed") },
	"symlink":     viaSymlink,
	"device":      func(name string) error { return unix.Mknod(name, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) },
	"socket-file": func(name string) error { return unix.Mknod(name, unix.S_IFSOCK|0o666, 0) },
	"run":         func(name string) error { return exec.Command(name).Run() },
	"run-copy":    runCopy,
	"memfd":       func(string) error { _, err := unix.MemfdCreate("x", 0); return err },

	"kill":   func(pid string) error { return unix.Kill(number(pid), syscall.SIGKILL) },
	"ptrace": func(pid string) error { return unix.PtraceAttach(number(pid)) },
	"peek": func(pid string) error {
		_, err := unix.ProcessVMReadv(number(pid), []unix.Iovec{}, []unix.RemoteIovec{}, 0)
		return err
	},
	"pidfd": func(pid string) error { return stealFile(number(pid)) },

	"socket": func(family string) error { return socket(number(family)) },
	"raw":    func(string) error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP); return err },
	"netfilter": func(string) error {
		_, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)
		return err
	},
	"pair":       func(kind string) error { return pair(number(kind)) },
	"connect":    func(address string) error { return reach(address) },
	"resolve":    func(host string) error { _, err := net.LookupHost(host); return err },
	"descriptor": func(string) error { return openFiles() },

	"proxy": func(host string) error { return viaProxy(host, os.Getenv("HTTPS_PROXY")) },
	"get":   get,

	"check": func(string) error {
		r := Check(context.Background())
		return fmt.Errorf("holds: %v; %s: %s", r.Holds, r.Parts[0].Name, r.Parts[0].Detail)
	},

	"unshare":   func(string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"clone":     func(string) error { return cloneUser() },
	"clone3":    func(string) error { return call(unix.SYS_CLONE3) },
	"setns":     func(string) error { return unix.Setns(0, 0) },
	"mount":     func(string) error { return unix.Mount("tmpfs", "out", "tmpfs", 0, "") },
	"open_tree": func(string) error { _, err := unix.OpenTree(unix.AT_FDCWD, ".", unix.OPEN_TREE_CLONE); return err },
	"umount":    func(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) },
	"chroot":    func(string) error { return unix.Chroot(".") },
	"pivot":     func(string) error { return unix.PivotRoot(".", ".") },
	"bpf":       func(string) error { return call(unix.SYS_BPF) },
	"keyctl":    func(string) error { _, err := unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, -3, 0, 0, 0); return err },
	"io_uring":  func(string) error { return call(unix.SYS_IO_URING_SETUP) },
	"perf":      func(string) error { return call(unix.SYS_PERF_EVENT_OPEN) },
	"userfault": func(string) error { return call(unix.SYS_USERFAULTFD) },
	"kexec":     func(string) error { return call(unix.SYS_KEXEC_LOAD) },
	"module":    func(string) error { return call(unix.SYS_INIT_MODULE) },
	"handle":    func(string) error { return call(unix.SYS_OPEN_BY_HANDLE_AT) },
	"syslog":    func(string) error { return call(unix.SYS_SYSLOG) },
	"hostname":  func(string) error { return unix.Sethostname([]byte("x")) },
	"clock":     func(string) error { return unix.ClockSettime(unix.CLOCK_REALTIME, &unix.Timespec{}) },
	"openat2":   func(string) error { return call(unix.SYS_OPENAT2) },
	"unknown":   func(string) error { return call(4000) },
	"other-abi": func(string) error { return otherABI() },
}

// attacker does what its arguments say, ATTACK or ATTACK=ARGUMENT, and writes a
// line for each: what the kernel said, or `done`.
func attacker(args []string) int {
	for _, arg := range args {
		name, argument, _ := strings.Cut(arg, "=")
		err := attacks[name](argument)
		fmt.Println(arg + ": " + spell(err))
	}
	return 0
}

// spell gives an error's number its name.
func spell(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func call(number uintptr) error {
	if _, _, errno := unix.RawSyscall6(number, 0, 0, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func touch(name string, flags int) error {
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func touchMode(name string, mode uint32) error {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY, mode)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// viaSymlink makes a link to a file and reads through it.
func viaSymlink(name string) error {
	link := filepath.Join("out", "link-"+strconv.Itoa(os.Getpid()))
	if err := os.Symlink(name, link); err != nil {
		return fmt.Errorf("symlink: %v", err)
	}
	defer os.Remove(link)
	return look(link)
}

// runCopy copies a program to where this one may write, and runs the copy.
func runCopy(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read: %v", err)
	}
	if err := os.WriteFile("out/copy", text, 0o755); err != nil {
		return fmt.Errorf("write: %v", err)
	}
	return exec.Command("./out/copy").Run()
}

// stealFile takes a descriptor of another process.
func stealFile(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(fd, 1, 0)
	return err
}

func pair(kind int) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
	if err == nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
	}
	return err
}

func reach(address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	return c.Close()
}

func cloneUser() error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		unix.Exit(0)
	}
	return nil
}

// openFiles says which descriptors are open beside the three streams.
func openFiles() error {
	for fd := 3; fd < 1024; fd++ {
		to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err == nil && !strings.HasPrefix(to, "anon_inode:") { // the runtime's own
			return fmt.Errorf("%d is open %s", fd, to)
		}
	}
	return nil
}
