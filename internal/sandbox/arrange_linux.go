package sandbox

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// arrangeFiles makes all that is mounted read-only but what may be written, and
// covers what is denied. Landlock knows nothing of modes, owners and times of
// files: this is what keeps them.
func arrangeFiles(o order) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return refuse(partMounts, fmt.Errorf("make the mounts private: %w", err))
	}
	trees, err := writableTrees(o.Grants)
	if err != nil {
		return refuse(partMounts, err)
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &readOnly); err != nil {
		return refuse(partMounts, fmt.Errorf("make the mounts read-only: %w", err))
	}
	for _, t := range trees {
		if err := t.attach(); err != nil {
			return refuse(partMounts, err)
		}
	}
	for _, path := range o.Covered {
		if err := coverPath(path); err != nil {
			return refuse(partMounts, err)
		}
	}
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", "/proc", "proc", quiet, ""); err != nil {
		return refuse(partProc, fmt.Errorf("mount a /proc of its own: %w", err))
	}
	return nil
}

// tree is a place that may be written, as a mount that is not attached yet.
type tree struct {
	path         string
	place, mount int
}

// writableTrees clones the mounts of what may be written, before all is made
// read-only.
func writableTrees(grants []Grant) ([]tree, error) {
	var trees []tree
	for _, g := range grants {
		if !g.Write || isDevice(g.Path) {
			continue // a device may be written on a read-only mount
		}
		place, err := openPath(g.Path)
		if err != nil {
			return nil, err
		}
		flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE)
		mount, err := unix.OpenTree(place, "", flags)
		if err != nil {
			return nil, fmt.Errorf("clone the mount of %s: %w", g.Path, err)
		}
		safe := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if err := unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &safe); err != nil {
			return nil, fmt.Errorf("clone the mount of %s: %w", g.Path, err)
		}
		trees = append(trees, tree{g.Path, place, mount})
	}
	return trees, nil
}

// attach mounts a tree over its place.
func (t tree) attach() error {
	defer unix.Close(t.place)
	defer unix.Close(t.mount)
	if err := unix.MoveMount(t.mount, "", t.place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s for writing: %w", t.path, err)
	}
	return nil
}

// coverPath mounts nothing over something.
func coverPath(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("cover %s: %w", path, err)
	}
	if info.IsDir() {
		err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "size=4k,mode=0555")
	} else {
		err = unix.Mount("/dev/null", path, "", unix.MS_BIND, "")
	}
	if err != nil {
		return fmt.Errorf("cover %s: %w", path, err)
	}
	return nil
}

// openPath opens a path, for reference alone, in which nothing is a link: what
// was resolved may have been changed since.
func openPath(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", path, err)
	}
	return fd, nil
}

func isDevice(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeDevice != 0
}

// arrangeProcesses bounds the number of processes where the kernel counts them
// by namespace, and makes /proc read-only.
func arrangeProcesses(l Limits) error {
	if pidsByNamespace() {
		most := strconv.FormatUint(max(l.Processes, fewestPids), 10)
		if err := os.WriteFile("/proc/sys/kernel/pid_max", []byte(most), 0); err != nil {
			return refuse(partProcesses, fmt.Errorf("bound the number of processes: %w", err))
		}
	}
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount("", "/proc", "", flags, ""); err != nil {
		return refuse(partProc, fmt.Errorf("make /proc read-only: %w", err))
	}
	return nil
}

// fewestPids is the least that the kernel takes for a namespace's pid_max.
const fewestPids = 301

// pidsByNamespace reports whether pid_max is a namespace's own, as it is since
// Linux 6.14. Before that it is the whole machine's, and not ours to change.
func pidsByNamespace() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 6 || major == 6 && minor >= 14
}

// arrangeNetwork brings up the loopback device and listens for the services.
func arrangeNetwork(ports []uint16) ([]int, error) {
	if err := loopbackUp(); err != nil {
		return nil, refuse(partNetwork, fmt.Errorf("bring up the loopback device: %w", err))
	}
	var listeners []int
	for _, port := range ports {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
		}
		if err == nil {
			err = unix.Listen(fd, 128)
		}
		if err != nil {
			return nil, refuse(partNetwork, fmt.Errorf("listen on port %d: %w", port, err))
		}
		listeners = append(listeners, fd)
	}
	return listeners, nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
