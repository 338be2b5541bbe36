package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// becomeProgram gives up what this process has that the program may not have,
// and executes the program. It returns if that failed, which it tells the warden.
func becomeProgram() int {
	// What is given up is a thread's, and it is this thread that executes.
	runtime.LockOSThread()
	o, err := readOrder()
	if err == nil {
		err = giveUp(o)
	}
	if err == nil {
		err = refuse(partProgram, fmt.Errorf("execute %s: %w", o.Program, execute(o)))
	}
	warden := os.NewFile(reportFile, "report")
	if json.NewEncoder(warden).Encode(refused(err)) != nil {
		return 2
	}
	return 1
}

// giveUp does so in the only order in which each step is still allowed.
func giveUp(o order) error {
	if err := os.Chdir(o.Dir); err != nil {
		return refuse(partProgram, err)
	}
	if err := limit(o.Limits); err != nil {
		return refuse(partLimits, err)
	}
	if err := dropCapabilities(); err != nil {
		return refuse(partCapabilities, err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return refuse(partCapabilities, err)
	}
	if err := restrictFiles(o.Grants); err != nil {
		return refuse(partLandlock, err)
	}
	if err := restrictCalls(); err != nil {
		return refuse(partSeccomp, err)
	}
	return nil
}

// limit sets the rlimits, none above what this process itself is held to.
func limit(l Limits) error {
	seconds := uint64(unix.RLIM_INFINITY)
	if l.CPU > 0 {
		seconds = max(1, uint64(l.CPU.Seconds()))
	}
	for _, r := range []struct {
		what string
		kind int
		most uint64
	}{
		{"core dumps", unix.RLIMIT_CORE, 1}, // with 0 the kernel would still start a handler, outside; 1 byte is none
		{"processor time", unix.RLIMIT_CPU, seconds},
		{"file size", unix.RLIMIT_FSIZE, l.FileSize},
		{"open files", unix.RLIMIT_NOFILE, l.Files},
		{"processes", unix.RLIMIT_NPROC, l.Processes},
		{"locked memory", unix.RLIMIT_MEMLOCK, 8 << 20},
		{"message queues", unix.RLIMIT_MSGQUEUE, 0},
	} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(r.kind, &now); err != nil {
			return fmt.Errorf("limit %s: %w", r.what, err)
		}
		most := min(r.most, now.Max)
		// The runtime would restore the limit of open files unless it is syscall
		// that changes it.
		if err := syscall.Setrlimit(r.kind, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit %s: %w", r.what, err)
		}
	}
	return nil
}

// dropCapabilities drops all but one: root keeps that of reading and writing
// files of others, within what Landlock grants.
func dropCapabilities() error {
	var keep uint32
	if os.Geteuid() == 0 {
		keep = 1 << unix.CAP_DAC_OVERRIDE
	}
	for c := uintptr(0); c <= 63; c++ {
		has, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, c, 0)
		if errno != 0 {
			break // past the last one that this kernel knows
		}
		if has == 0 || c < 32 && keep&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop the ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	data[0].Effective, data[0].Permitted = keep, keep
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("drop the capabilities: %w", err)
	}
	return nil
}

// execute becomes the program. The limit of memory comes last: this process, which
// reserves more than it uses, may be above it already, and must not ask for any
// more.
func execute(o order) error {
	path, err := unix.BytePtrFromString(o.Program)
	if err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(o.Argv)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(o.Env)
	if err != nil {
		return err
	}
	if most := o.Limits.Memory; most > 0 {
		limit := unix.Rlimit{Cur: most, Max: most}
		_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_AS, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		if errno != 0 {
			return errno
		}
	}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	return errno
}
