package sandbox

import "testing"

func TestRun(t *testing.T) {
	r := newRoom(t)
	o := do(t, r.shell("cat in/note; echo; echo more >out/file; ls / ; cat ../outside/secret; echo x > ../outside/y; cat /proc/self/status | grep -E 'Cap|NoNew|Seccomp'; id; mount | head -3; env; ls /proc; exit 3", "cat", "ls", "id", "grep", "mount", "head", "env"))
	t.Logf("%+v\n%s\n%s", o.Result, o.stdout, o.stderr)
}
