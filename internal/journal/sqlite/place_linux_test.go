package sqlite

import (
	"strings"
	"testing"
)

func TestFUSENetwork(t *testing.T) {
	const mounts = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 22 0:27 / /home rw shared:2 - fuse.sshfs me@far:/home rw
32 31 0:28 / /home/me/fast rw - ext4 /dev/vdb rw
33 22 0:29 / /mnt/bucket rw - fuse.s3fs s3fs rw
34 22 0:30 / /mnt/local rw - fuse.bindfs /srv rw
`
	for dir, want := range map[string]string{
		"/":                  "",
		"/homes":             "",
		"/home":              "fuse.sshfs",
		"/home/me":           "fuse.sshfs",
		"/home/me/fast/deep": "",
		"/mnt/bucket/a":      "fuse.s3fs",
		"/mnt/local/a":       "",
	} {
		if got := fuseNetwork(mounts, dir); got != want {
			t.Errorf("%s is on %q, want %q", dir, got, want)
		}
	}
}

func TestRefuseNetwork(t *testing.T) {
	if err := refuseNetwork(t.TempDir()); err != nil {
		t.Errorf("a local folder: %v", err)
	}
	const proc = 0x9fa0 // as if /proc were a network file system
	networkMagic[proc] = "test"
	defer delete(networkMagic, proc)
	err := refuseNetwork("/proc")
	if err == nil || !strings.Contains(err.Error(), "/proc is on a network file system (test)") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(t.Context(), "/proc/self/stoplog.db", Options{}); err == nil || !strings.Contains(err.Error(), "network") {
		t.Errorf("open: %v", err)
	}
}
