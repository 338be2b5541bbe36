//go:build !amd64

package sandbox

import "syscall"

// otherABI has nothing to try where a program has one ABI.
func otherABI() error { return syscall.EPERM }
