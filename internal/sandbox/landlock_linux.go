package sandbox

import (
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// leastABI is the oldest Landlock that will do: before it, a file that may only
// be read could be truncated. Linux 6.2 has it.
const leastABI = 3

// The rights of a grant. Sockets and devices are never made.
const (
	readRights  = ll.AccessFSReadFile | ll.AccessFSReadDir
	writeRights = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	runRights = ll.AccessFSExecute
	// fileRights are those that a file can have.
	fileRights = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSExecute
)

// landlockABI is the version of Landlock that the kernel has; 0 is none.
func landlockABI() int {
	const version = 1
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// handled is all that a version of Landlock can refuse about files, as far as
// we know it.
func handled(abi int) (landlock.AccessFSSet, landlock.ScopedSet) {
	files := landlock.AccessFSSet(ll.AccessFSTruncate<<1 - 1)
	if abi >= 5 {
		files |= ll.AccessFSIoctlDev
	}
	if abi >= 9 {
		files |= ll.AccessFSResolveUnix
	}
	if abi < 6 {
		return files, 0
	}
	return files, ll.ScopeAbstractUnixSocket | ll.ScopeSignal
}

// restrictFiles holds this process to what is granted. The network is not
// Landlock's: it knows ports and no hosts, and the namespace has no way out.
func restrictFiles(grants []Grant) error {
	abi := landlockABI()
	if abi < leastABI {
		return fmt.Errorf("the kernel has version %d of Landlock, and %d is needed", abi, leastABI)
	}
	files, scoped := handled(abi)
	args := []any{files}
	if scoped != 0 {
		args = append(args, scoped)
	}
	config, err := landlock.NewConfig(args...)
	if err != nil {
		return err
	}
	var rules []landlock.Rule
	for _, g := range grants {
		fd, err := openPath(g.Path)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		rules = append(rules, landlock.PathAccess(g.access(), fmt.Sprintf("/proc/self/fd/%d", fd)))
	}
	return config.Restrict(rules...)
}

// access are the rights of a grant.
func (g Grant) access() landlock.AccessFSSet {
	var a landlock.AccessFSSet
	if g.Read {
		a |= readRights
	}
	if g.Write {
		a |= writeRights
	}
	if g.Run {
		a |= runRights
	}
	if !g.Dir {
		a &= fileRights
	}
	return a
}
