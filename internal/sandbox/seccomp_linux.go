package sandbox

import (
	"fmt"
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// withheld are the system calls that no program gets: those that look into or
// change other processes, that mount, that reach the kernel's keys, clocks,
// modules and tracing, that make namespaces, and those that would get around what
// is judged here (io_uring makes other calls unseen; a file in memory is
// executed whatever Landlock says; a handle opens a file without its path).
var withheld = []string{
	"acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module", "fanotify_init", "finit_module",
	"fsconfig", "fsmount", "fsopen", "fspick", "get_kernel_syms", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup",
	"ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "memfd_create", "memfd_secret", "migrate_pages",
	"modify_ldt", "mount", "mount_setattr", "move_mount", "move_pages", "name_to_handle_at", "nfsservctl", "open_by_handle_at",
	"open_tree", "open_tree_attr", "perf_event_open", "pidfd_getfd", "pivot_root", "process_madvise", "process_vm_readv",
	"process_vm_writev", "ptrace", "query_module", "quotactl", "quotactl_fd", "reboot", "request_key", "setdomainname", "sethostname",
	"setns", "settimeofday", "stime", "swapoff", "swapon", "syslog", "_sysctl", "umount", "umount2", "unshare", "uselib", "userfaultfd",
	"ustat", "vhangup", "vm86", "vm86old", "vmsplice",
}

// absent are the calls that a program is told this kernel does not have, so
// that it uses an older one whose arguments can be judged.
var absent = []string{"clone3", "openat2"}

// restrictCalls installs the filters. Each is a function of a call's number and
// its arguments, and the strictest answer of all counts.
func restrictCalls() error {
	here, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("there is no list of system calls for this machine: %w", err)
	}
	for _, policy := range append(argumentPolicies(here), numberPolicy(here)) {
		if err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Policy: policy}); err != nil {
			return err
		}
	}
	return nil
}

// numberPolicy lets through each call that is known and not withheld. What is
// not known is refused, and so is every call of another architecture: a 32-bit
// program's calls have other numbers.
func numberPolicy(here *arch.Info) seccomp.Policy {
	var allowed []string
	for name := range here.SyscallNames {
		if !slices.Contains(withheld, name) && !slices.Contains(absent, name) {
			allowed = append(allowed, name)
		}
	}
	slices.SortFunc(allowed, func(a, b string) int { return here.SyscallNames[a] - here.SyscallNames[b] })
	return seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{
			{Names: known(here, absent), Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
			{Names: allowed, Action: seccomp.ActionAllow},
		},
	}
}

// namespaces are the flags of clone that make one.
const namespaces = unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
	unix.CLONE_NEWUSER | unix.CLONE_NEWUTS

// setID are the bits of a file's mode that lend its owner's rights.
const setID = unix.S_ISUID | unix.S_ISGID

// argumentPolicies refuse calls by their arguments. Each is a filter of its own
// with one call: the library goes on with an argument in the place of the number
// where several are in one.
func argumentPolicies(here *arch.Info) []seccomp.Policy {
	is := func(argument uint32, op seccomp.Operation, value uint64) seccomp.Condition {
		return seccomp.Condition{Argument: argument, Operation: op, Value: value}
	}
	var policies []seccomp.Policy
	refuse := func(name string, conditions ...seccomp.Condition) {
		if _, ok := here.SyscallNames[name]; !ok {
			return // this machine never had it
		}
		policies = append(policies, seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls: []seccomp.SyscallGroup{{
				NamesWithCondtions: []seccomp.NameWithConditions{{Name: name, Conditions: conditions}},
				Action:             seccomp.ActionErrno,
			}},
		})
	}
	refuse("clone", is(0, seccomp.BitsSet, namespaces))
	// The internet's families lead to the sandbox's own loopback device, netlink
	// tells of it. A unix socket has a name in the file system, which Landlock does
	// not judge before its version 9.
	refuse("socket", is(0, seccomp.NotEqual, unix.AF_INET), is(0, seccomp.NotEqual, unix.AF_INET6), is(0, seccomp.NotEqual, unix.AF_NETLINK))
	refuse("socket", is(0, seccomp.Equal, unix.AF_NETLINK), is(2, seccomp.NotEqual, unix.NETLINK_ROUTE))
	// A pair of datagram sockets could still be pointed at a name; 2 is in
	// SOCK_DGRAM and SOCK_RAW, and not in SOCK_STREAM and SOCK_SEQPACKET.
	refuse("socketpair", is(1, seccomp.BitsSet, unix.SOCK_DGRAM))
	refuse("chmod", is(1, seccomp.BitsSet, setID))
	refuse("fchmod", is(1, seccomp.BitsSet, setID))
	refuse("fchmodat", is(2, seccomp.BitsSet, setID))
	refuse("fchmodat2", is(2, seccomp.BitsSet, setID))
	refuse("mknod", is(1, seccomp.BitsSet, setID))
	refuse("mknodat", is(2, seccomp.BitsSet, setID))
	refuse("creat", is(1, seccomp.BitsSet, setID))
	refuse("open", is(1, seccomp.BitsSet, unix.O_CREAT), is(2, seccomp.BitsSet, setID))
	refuse("openat", is(2, seccomp.BitsSet, unix.O_CREAT), is(3, seccomp.BitsSet, setID))
	return policies
}

// known are those of the names that this machine has.
func known(here *arch.Info, names []string) []string {
	var found []string
	for _, name := range names {
		if _, ok := here.SyscallNames[name]; ok {
			found = append(found, name)
		}
	}
	return found
}
