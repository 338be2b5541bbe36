package sandbox

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// otherABI asks for its number (20) as a 32-bit program does, by interrupt 0x80:
// a filter that only knows 64-bit numbers takes that for another call.
func otherABI() error {
	code, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	copy(code, []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x48, 0x98, 0xc3}) // mov eax, 20; int 0x80; cdqe; ret
	at := uintptr(unsafe.Pointer(&code[0]))
	entry := &at
	getpid := *(*func() int)(unsafe.Pointer(&entry))
	if n := getpid(); n < 0 {
		return syscall.Errno(-n)
	}
	return nil
}
