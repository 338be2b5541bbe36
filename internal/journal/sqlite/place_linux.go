package sqlite

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// networkMagic are the types, as statfs(2) gives them, of file systems on which
// another machine may write the same file: there SQLite's locks and the shared
// memory of its write-ahead log do not hold. The numbers are Linux's, from
// include/uapi/linux/magic.h and the file systems' own sources.
var networkMagic = map[uint32]string{
	0x6969:     "nfs",
	0x517b:     "smb",
	0xff534d42: "cifs",
	0xfe534d42: "smb2",
	0x01021997: "9p",
	0x00c36400: "ceph",
	0x5346414f: "afs",
	0x6b414653: "afs",
	0x73757245: "coda",
	0x0bd00bd0: "lustre",
	0x47504653: "gpfs",
	0x786f4256: "vboxsf",
	0x61636673: "acfs",
}

// networkFUSE are file systems of user space with the same fault; to statfs(2)
// they are all alike, and /proc/self/mountinfo tells them apart.
var networkFUSE = []string{"sshfs", "glusterfs", "s3fs", "rclone", "gcsfuse", "juicefs", "davfs"}

const fuseMagic = 0x65735546

// refuseNetwork fails if dir is on a network file system that is known.
func refuseNetwork(dir string) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("find the file system of %s: %w", dir, err)
	}
	name := networkMagic[uint32(st.Type)]
	if uint32(st.Type) == fuseMagic {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return fmt.Errorf("find the file system of %s: %w", dir, err)
		}
		name = fuseNetwork(string(mounts), dir)
	}
	if name != "" {
		return fmt.Errorf("%s is on a network file system (%s), where SQLite's locks do not hold: choose a local one, or store: postgres://…", dir, name)
	}
	return nil
}

// fuseNetwork returns the type of the mount that holds dir, if it is one of
// networkFUSE, given what /proc/self/mountinfo says.
func fuseNetwork(mounts, dir string) string {
	best, kind := "", ""
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 1 {
			continue
		}
		point := strings.TrimSuffix(left[4], "/")
		if len(point) >= len(best) && (dir == point || strings.HasPrefix(dir, point+"/")) {
			best, kind = point, right[0]
		}
	}
	for _, n := range networkFUSE {
		if kind == "fuse."+n {
			return kind
		}
	}
	return ""
}
