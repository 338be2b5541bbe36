package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestCheck(t *testing.T) {
	needsSandbox(t)
	r := checked()
	var names []string
	for _, p := range r.Parts {
		if names = append(names, p.Name); !p.Holds || p.Detail == "" {
			t.Errorf("%+v, of a sandbox that holds", p)
		}
	}
	if !slices.Equal(names, parts) {
		t.Errorf("parts: %v, want %v", names, parts)
	}
	user := "an ordinary user"
	if os.Geteuid() == 0 {
		user = "root"
	}
	if r.User != user {
		t.Errorf("tried as %s, want %s", r.User, user)
	}
}

// A part that is refused stands in the report with its reason, and the others
// were not tried.
func TestCheckRefused(t *testing.T) {
	tried := map[string]Part{}
	if err := judge(tried, Result{End: Exited, Left: 0}, []byte(`[{"name":"seccomp","holds":true,"detail":"a"},{"name":"seccomp","holds":false,"detail":"b"}]`)); err != nil {
		t.Fatal(err)
	}
	if p := tried[partSeccomp]; p.Holds || p.Detail != "a; b" {
		t.Errorf("one of two that failed: %+v", p)
	}
	if tried[partDescendants].Holds {
		t.Error("descendants hold though none was seen")
	}
	if err := judge(tried, Result{End: Lost}, nil); err == nil {
		t.Error("a probe that was lost proves something")
	}
}

// Where the kernel gives no namespaces, as in a sandbox, nothing holds, nothing is
// run, and the part is named.
func TestCheckWithoutNamespaces(t *testing.T) {
	o := do(t, newRoom(t).attack(t, "check"))
	if !strings.HasPrefix(o.stdout, "check: holds: false; namespaces: make namespaces for it: ") || !strings.Contains(o.stdout, "operation not permitted") {
		t.Errorf("it says %q, %q", o.stdout, o.stderr)
	}
}

// The whole suite again as an ordinary user, if this is root.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // it is one already
	}
	needsSandbox(t)
	dir, err := os.MkdirTemp("", "stoplog-user-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	suite, tmp := filepath.Join(dir, "suite.test"), filepath.Join(dir, "tmp")
	for _, err := range []error{os.Chmod(dir, 0o755), os.WriteFile(suite, program, 0o755), os.Mkdir(tmp, 0o700), os.Chown(tmp, nobody, nobody)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(suite, "-test.v", "-test.timeout=3m")
	c.Dir = tmp
	c.Env = []string{"PATH=" + standardPath, "TMPDIR=" + tmp, "HOME=" + tmp, "CI=" + os.Getenv("CI")}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("as an ordinary user: %v\n%s", err, out)
	}
	if n := strings.Count(string(out), "--- PASS: TestEscape"); n < 6 && !strings.Contains(string(out), "no sandbox to give") {
		t.Errorf("%d tests of escapes ran as an ordinary user\n%s", n, out)
	}
}
