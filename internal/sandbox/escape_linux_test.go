package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// attack is a specification of the attacker, in the room's scope.
func (r room) attack(t *testing.T, what ...string) Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := r.shell("")
	s.Argv, s.as = append([]string{self}, what...), attackerName
	return s
}

// mustSay runs attacks and compares what the kernel said of each with what it
// may say: one of several names, with `|` between them.
func mustSay(t *testing.T, s Spec, want map[string]string) {
	t.Helper()
	var what []string
	for attack := range want {
		what = append(what, attack)
	}
	s.Argv = append(s.Argv[:1:1], what...)
	o := do(t, s)
	if o.End != Exited || o.Exit != 0 {
		t.Fatalf("the attacker %v (exit code %d): %s", o.End, o.Exit, o.stderr)
	}
	said := map[string]string{}
	for line := range strings.Lines(o.stdout) {
		i := strings.LastIndex(line, ": ")
		said[line[:i]] = strings.TrimSpace(line[i+2:])
	}
	for attack, answers := range want {
		ok := false
		for answer := range strings.SplitSeq(answers, "|") {
			ok = ok || said[attack] == answer
		}
		if !ok {
			t.Errorf("%s: %s, want %s", attack, said[attack], answers)
		}
	}
}

// What is in the scope is done: the attacker can do what it is not kept from.
func TestScopeHolds(t *testing.T) {
	r := newRoom(t)
	s := r.attack(t)
	mustSay(t, s, map[string]string{
		"read=in/note":    "done",
		"list=in":         "done",
		"create=out/a":    "done",
		"mkdir=out/b":     "done",
		"socket=2":        "done",
		"socket=10":       "done",
		"pair=1":          "done",
		"read=/dev/null":  "done",
		"write=/dev/null": "done",
		"descriptor":      "done",
	})
	if _, err := os.Stat(filepath.Join(r.root, "out", "a")); err != nil {
		t.Error("what was written is not there:", err)
	}
}

func TestEscapeFiles(t *testing.T) {
	r := newRoom(t)
	secret := filepath.Join(r.outside, "secret")
	if err := os.Symlink(secret, filepath.Join(r.root, "in", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(r.outside, filepath.Join(r.root, "in", "dir")); err != nil {
		t.Fatal(err)
	}
	fixed := time.Now().Add(-time.Hour)
	if err := os.Chtimes(secret, fixed, fixed); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(secret)
	if err != nil {
		t.Fatal(err)
	}
	mustSay(t, r.attack(t), map[string]string{
		"read=" + secret:                        "EACCES",
		"read=../outside/secret":                "EACCES",
		"read=in/../../outside/secret":          "EACCES",
		"read=in/link":                          "EACCES",
		"read=in/dir/secret":                    "EACCES",
		"symlink=" + secret:                     "EACCES",
		"symlink=../../outside/secret":          "EACCES",
		"read=/proc/self/root" + secret:         "EACCES",
		"read=/proc/self/cwd/../outside/secret": "EACCES",
		"read=/proc/thread-self/root" + secret:  "EACCES",
		"list=" + r.outside:                     "EACCES",
		"list=.":                                "EACCES",
		"list=/":                                "EACCES",
		"write=" + secret:                       "EROFS|EACCES",
		"write=in/note":                         "EROFS|EACCES",
		"write=in/link":                         "EROFS|EACCES",
		"create=in/new":                         "EROFS|EACCES",
		"create=" + r.outside + "/new":          "EROFS|EACCES",
		"create=new":                            "EROFS|EACCES",
		"truncate=" + secret:                    "EROFS|EACCES",
		"truncate=in/note":                      "EROFS|EACCES",
		"remove=in/note":                        "EROFS|EACCES",
		"remove=" + secret:                      "EROFS|EACCES",
		"mkdir=" + r.outside + "/d":             "EROFS|EACCES",
		"chmod=" + secret:                       "EROFS",
		"chmod=in/note":                         "EROFS",
		"chown=" + secret:                       "EROFS",
		"utimes=" + secret:                      "EROFS",
		"setxattr=" + secret:                    "EROFS",
		"link-out=" + secret:                    "EXDEV|EACCES",
		"link-out=in/note":                      "EXDEV|EACCES",
		"rename-out=in/note":                    "EXDEV|EACCES|EROFS",
		"rename-out=" + secret:                  "EXDEV|EACCES|EROFS",
		"device=out/null":                       "EPERM|EACCES",
		"socket-file=out/socket":                "EPERM|EACCES",
		"setuid=out":                            "EPERM",
		"setuid-at=out":                         "EPERM",
		"setuid-open=out/suid":                  "EPERM",
	})
	if after, err := os.Stat(secret); err != nil || !after.ModTime().Equal(before.ModTime()) || after.Mode() != before.Mode() {
		t.Errorf("the file outside was changed: %v, %v", after, err)
	}
	if read(t, secret) != "hunter2" || read(t, filepath.Join(r.root, "in", "note")) != "a note" {
		t.Error("a file was written")
	}
}

func TestEscapePrograms(t *testing.T) {
	r := newRoom(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mustSay(t, r.attack(t), map[string]string{
		"run=/bin/sh":      "EACCES",
		"run=/usr/bin/id":  "EACCES",
		"run-copy=" + self: "EACCES",
		"memfd":            "EPERM",
	})
}

// The host's processes can not be seen, the warden can not be looked into.
func TestEscapeProcesses(t *testing.T) {
	r := newRoom(t)
	host := strconv.Itoa(1 << 22) // no process of the namespace has this number
	mustSay(t, r.attack(t), map[string]string{
		"kill=" + host:                        "ESRCH",
		"kill=1":                              "EPERM|done", // before version 6 of Landlock process 1 ignores it
		"read=/proc/1/environ":                "EACCES",
		"read=/proc/1/mem":                    "EACCES",
		"read=/proc/1/maps":                   "EACCES",
		"readlink=/proc/1/root":               "EACCES",
		"readlink=/proc/1/cwd":                "EACCES",
		"readlink=/proc/1/exe":                "EACCES",
		"read=/proc/1/fd/0":                   "EACCES",
		"list=/proc/1/root/":                  "EACCES",
		"write=/proc/self/mem":                "EACCES|EROFS",
		"write=/proc/sysrq-trigger":           "EACCES|EROFS|ENOENT",
		"write=/proc/sys/kernel/core_pattern": "EACCES|EROFS",
		"ptrace=1":                            "EPERM",
		"peek=1":                              "EPERM",
		"pidfd=1":                             "EPERM",
	})
}

func TestEscapeCalls(t *testing.T) {
	r := newRoom(t)
	mustSay(t, r.attack(t), map[string]string{
		"unshare":      "EPERM",
		"clone":        "EPERM",
		"clone3":       "ENOSYS",
		"setns":        "EPERM",
		"mount":        "EPERM",
		"open_tree":    "EPERM",
		"umount=/proc": "EPERM",
		"chroot":       "EPERM",
		"pivot":        "EPERM",
		"bpf":          "EPERM",
		"keyctl":       "EPERM",
		"io_uring":     "EPERM",
		"perf":         "EPERM",
		"userfault":    "EPERM",
		"kexec":        "EPERM",
		"module":       "EPERM",
		"handle":       "EPERM",
		"syslog":       "EPERM",
		"hostname":     "EPERM",
		"clock":        "EPERM",
		"openat2":      "ENOSYS",
		"unknown":      "EPERM",
		"other-abi":    "EPERM",
	})
}

func TestEscapeNetwork(t *testing.T) {
	r := newRoom(t)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	mustSay(t, r.attack(t), map[string]string{
		"connect=" + tcp.Addr().String():         "ECONNREFUSED",
		"connect=192.0.2.1:80":                   "ENETUNREACH",
		"connect=[2001:db8::1]:80":               "ENETUNREACH",
		"connect=169.254.169.254:80":             "ENETUNREACH",
		"socket=" + strconv.Itoa(unix.AF_UNIX):   "EPERM",
		"socket=" + strconv.Itoa(unix.AF_PACKET): "EPERM",
		"socket=" + strconv.Itoa(unix.AF_VSOCK):  "EPERM",
		"socket=" + strconv.Itoa(unix.AF_ALG):    "EPERM",
		"netfilter":                              "EPERM",
		"raw":                                    "EPERM|EACCES",
		"pair=" + strconv.Itoa(unix.SOCK_DGRAM):  "EPERM",
		"pair=" + strconv.Itoa(unix.SOCK_RAW):    "EPERM",
	})
}

// What the host has open, whoever opened it and however, stays behind.
func TestEscapeDescriptors(t *testing.T) {
	r := newRoom(t)
	fd, err := syscall.Open(filepath.Join(r.outside, "secret"), syscall.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	mustSay(t, r.attack(t), map[string]string{
		"descriptor":                             "done",
		"read=/proc/self/fd/" + strconv.Itoa(fd): "ENOENT|EACCES",
	})
}
