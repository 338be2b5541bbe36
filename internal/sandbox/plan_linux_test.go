package sandbox

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// grants are the grants of a plan that are the scope's, as `rwx path`, relative
// to the root.
func grants(p Plan) []string {
	var all []string
	for _, g := range p.Grants {
		rel, err := filepath.Rel(p.root, g.Path)
		if err != nil || strings.HasPrefix(rel, "..") {
			continue
		}
		mode := []byte("---")
		if g.Read {
			mode[0] = 'r'
		}
		if g.Write {
			mode[1] = 'w'
		}
		if g.Run {
			mode[2] = 'x'
		}
		if g.Dir {
			rel += "/"
		}
		all = append(all, string(mode)+" "+rel)
	}
	return all
}

func TestResolve(t *testing.T) {
	for name, c := range map[string]struct {
		scope Scope
		want  []string
		err   string
	}{
		"a whole directory":          {scope: Scope{Read: []string{"src/**"}}, want: []string{"r-- src/"}},
		"the root":                   {scope: Scope{Read: []string{"**"}}, want: []string{"r-- ./"}},
		"a plain directory":          {scope: Scope{Read: []string{"./src"}}, want: []string{"r-- src/"}},
		"a plain file":               {scope: Scope{Read: []string{"src/a.go"}}, want: []string{"r-- src/a.go"}},
		"a missing file":             {scope: Scope{Read: []string{"src/none"}}},
		"files of a directory":       {scope: Scope{Read: []string{"src/*.go"}}, want: []string{"r-- src/a.go", "r-- src/b.go"}},
		"files at any depth":         {scope: Scope{Read: []string{"**/*.go"}}, want: []string{"r-- src/a.go", "r-- src/b.go", "r-- src/deep/c.go"}},
		"one character":              {scope: Scope{Read: []string{"src/?.go"}}, want: []string{"r-- src/a.go", "r-- src/b.go"}},
		"a link inside":              {scope: Scope{Read: []string{"links/in"}}, want: []string{"r-- src/a.go"}},
		"a link out":                 {scope: Scope{Read: []string{"links/out"}}, err: `read: pattern "links/out" leads out of the root through a symbolic link`},
		"a link out among others":    {scope: Scope{Read: []string{"links/*"}}, want: []string{"r-- src/a.go"}},
		"a directory through a link": {scope: Scope{Write: []string{"links/dir/**"}}, err: `write: pattern "links/dir/**" leads out of the root through a symbolic link`},
		"a link to nowhere":          {scope: Scope{Write: []string{"links/nowhere"}}, err: `write: pattern "links/nowhere" leads through a symbolic link to nowhere`},
		"upwards":                    {scope: Scope{Read: []string{"src/../../x"}}, err: `read: pattern "src/../../x" leads upwards`},
		"absolute":                   {scope: Scope{Read: []string{"/etc/passwd"}}, err: `read: pattern "/etc/passwd" is absolute: write it relative to the root`},
		"nothing":                    {scope: Scope{Read: []string{""}}, err: "read: a pattern is empty"},
		"a bad class":                {scope: Scope{Read: []string{"a[/b"}}, err: `read: pattern "a[/b": syntax error in pattern`},
		"a directory to write":       {scope: Scope{Write: []string{"src/**"}}, want: []string{"rw- src/"}},
		"one that is to be made":     {scope: Scope{Write: []string{"tmp/x/**"}}, want: []string{"rw- tmp/x/"}},
		"a file to be made":          {scope: Scope{Write: []string{"tmp/report"}}, want: []string{"rw- tmp/report"}},
		"a file that is there":       {scope: Scope{Write: []string{"src/a.go"}}, want: []string{"rw- src/a.go"}},
		"files to write":             {scope: Scope{Write: []string{"src/*.out"}}, want: []string{"rw- src/"}},
		"any file to write":          {scope: Scope{Write: []string{"*.out"}}, err: `write: pattern "*.out" would open the whole root to writing: begin it with a directory`},
		"a script":                   {scope: Scope{Run: []string{"./tool"}}, want: []string{"r-x tool"}},
		"a script that is not there": {scope: Scope{Run: []string{"./none"}}, err: "run: lstat ROOT/none: no such file or directory"},
		"a name":                     {scope: Scope{Run: []string{"no-such-program"}}, err: `run: there is no program "no-such-program" in PATH`},
		"read and run":               {scope: Scope{Read: []string{"tool"}, Run: []string{"./to*"}}, want: []string{"r-x tool"}},
		"one file, twice":            {scope: Scope{Read: []string{"src/a.go", "src/a.go"}}, want: []string{"r-- src/a.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			furnish(t, r)
			c.scope.Root = r.root
			p, err := Spec{Argv: []string{"/bin/sh"}, Scope: c.scope}.Resolve()
			var refused *RefusedError
			if c.err != "" {
				if !errors.As(err, &refused) || refused.Part != "scope" || refused.Err.Error() != strings.ReplaceAll(c.err, "ROOT", r.root) {
					t.Fatalf("got %v, want %s", err, c.err)
				}
				return
			}
			if err != nil || !slices.Equal(grants(p), c.want) {
				t.Errorf("got %q, %v, want %q", grants(p), err, c.want)
			}
		})
	}
}

// furnish fills a room.
func furnish(t *testing.T, r room) {
	t.Helper()
	for _, dir := range []string{"src/deep", "links"} {
		if err := os.MkdirAll(filepath.Join(r.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"src/a.go", "src/b.go", "src/c.txt", "src/deep/c.go"} {
		write(t, filepath.Join(r.root, name), "text")
	}
	if err := os.WriteFile(filepath.Join(r.root, "tool"), []byte("#!/bin/sh\necho done by a script\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"in": "../src/a.go", "out": filepath.Join(r.outside, "secret"), "dir": r.outside, "nowhere": "none"} {
		if err := os.Symlink(to, filepath.Join(r.root, "links", link)); err != nil {
			t.Fatal(err)
		}
	}
}

// What is always denied is refused where it is named, covered where it lies in
// what is granted, and never there to be made.
func TestDenied(t *testing.T) {
	r := newRoom(t)
	t.Setenv("HOME", r.root)
	if err := os.Mkdir(filepath.Join(r.root, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.root, ".ssh", "id"), "a key")
	write(t, filepath.Join(r.root, ".netrc"), "a password")
	write(t, filepath.Join(r.root, "in", "state.db"), "rows")
	for name, change := range map[string]func(*Spec){
		"a denied directory":        func(s *Spec) { s.Scope.Read = []string{".ssh/**"} },
		"a denied file":             func(s *Spec) { s.Scope.Read = []string{".netrc"} },
		"in a denied directory":     func(s *Spec) { s.Scope.Read = []string{".ssh/id"} },
		"a home to write to":        func(s *Spec) { s.Scope.Write = []string{"**"} },
		"by the caller":             func(s *Spec) { s.Read = []string{filepath.Join(r.root, ".ssh")} },
		"what the caller denies":    func(s *Spec) { s.Deny = []string{filepath.Join(r.root, "in")} },
		"what could be made in one": func(s *Spec) { s.Deny = []string{filepath.Join(r.root, "out", "later")} },
	} {
		s := r.shell("cat .netrc")
		change(&s)
		if _, err := s.Resolve(); err == nil || !strings.Contains(err.Error(), "always denied") {
			t.Errorf("%s: %v", name, err)
		}
	}

	s := r.attack(t)
	s.Scope.Read = []string{"**"}
	s.Deny = []string{filepath.Join(r.root, "in", "state.db")}
	mustSay(t, s, map[string]string{
		"read=in/note": "done",
		"read=.ssh/id": "ENOENT",
		"list=.ssh":    "done",
		"remove=.ssh":  "EROFS|EBUSY|EACCES",
	})
	s = r.shell("cat in/note .netrc in/state.db", "cat")
	s.Scope.Read, s.Deny = []string{"**"}, []string{filepath.Join(r.root, "in", "state.db")}
	if o := do(t, s); o.stdout != "a note" {
		t.Errorf("read %q: %s", o.stdout, o.stderr)
	}
	if text := read(t, filepath.Join(r.root, ".netrc")); text != "a password" {
		t.Errorf("what was covered is now %q", text)
	}
}

func TestWrites(t *testing.T) {
	r := newRoom(t)
	furnish(t, r)
	s := r.shell("echo 1 >tmp/x/made; echo 2 >report; echo 3 >src/a.go; ./tool")
	s.Scope.Write = []string{"tmp/x/**", "report", "unused", "src/a.go"}
	s.Scope.Run = []string{"./tool"}
	if o := do(t, s); !o.Passed() || o.stdout != "done by a script\n" || o.stderr != "" {
		t.Errorf("%+v: %q, %q", o.Result, o.stdout, o.stderr)
	}
	for name, want := range map[string]string{"tmp/x/made": "1\n", "report": "2\n", "src/a.go": "3\n"} {
		if got := read(t, filepath.Join(r.root, name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(r.root, "unused")); !os.IsNotExist(err) {
		t.Errorf("a file that was made and not written to is still there: %v", err)
	}
}

func TestRefused(t *testing.T) {
	r := newRoom(t)
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no") }
	for want, change := range map[string]func(*Spec){
		"there is no program to run":                               func(s *Spec) { s.Argv = nil },
		`there is no program "no-such-program" in PATH`:            func(s *Spec) { s.Argv = []string{"no-such-program"} },
		`the root "relative" is not an absolute path`:              func(s *Spec) { s.Scope.Root = "relative" },
		"the root: lstat /no-such-root: no such file or directory": func(s *Spec) { s.Scope.Root = "/no-such-root" },
		"hosts: there is nobody to connect to them":                func(s *Spec) { s.Scope.Hosts = []string{"a.test:443"} },
		`hosts: "a.test" is not HOST:PORT`:                         func(s *Spec) { s.Scope.Hosts, s.Dial = []string{"a.test"}, dial },
		"65 services are more than 64":                             func(s *Spec) { s.Services = make([]Service, 65) },
	} {
		s := r.shell("exit 0")
		change(&s)
		_, err := Start(t.Context(), s)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Part != "scope" || refused.Err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	s := r.shell("exit 0")
	s.Dir = r.outside
	if _, err := Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "outside of the root") {
		t.Errorf("a working directory outside: %v", err)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"**", "a", true},
		{"**", "a/b/c", true},
		{"a/**", "a/b", true},
		{"a/**/c", "a/c", true},
		{"a/**/c", "a/b/b/c", true},
		{"a/**/c", "a/b/b/d", false},
		{"*.go", "a.go", true},
		{"*.go", "a/b.go", false},
		{"**/*.go", "a/b.go", true},
		{"a?", "ab", true},
		{"a?", "a", false},
		{"a", "a/b", false},
		{"a/b", "a", false},
		{"**/a/**/b", "x/a/y/a/z/b", true},
		{"**/a/**/b", "x/b/y/a/z", false},
		{"**/**/**/**/**/**/**/**/x", strings.Repeat("a/", 500) + "y", false},
		{"**/a/**/a/**/a/**/a/**/a/**/x", strings.Repeat("a/", 500) + "y", false},
	} {
		p, err := parsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := match(p.segments, strings.Split(c.name, "/")); got != c.want {
			t.Errorf("%s stands for %s: %v", c.pattern, c.name, got)
		}
	}
}

// Whatever a pattern is, it stands for nothing outside of the root.
func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"**", "in/**", "links/*", "links/dir/**", "../x", "a[", "**/secret", "links/out", "./in//note", "in/../in/note", "tmp/x"} {
		f.Add(seed)
	}
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "links"), 0o755), os.MkdirAll(filepath.Join(root, "in"), 0o755),
		os.WriteFile(filepath.Join(dir, "secret"), nil, 0o644), os.WriteFile(filepath.Join(root, "in", "note"), nil, 0o644),
		os.Symlink("../../secret", filepath.Join(root, "links", "out")), os.Symlink("../..", filepath.Join(root, "links", "dir")),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range []rights{mayRead, mayWrite} {
			p := planner{}
			p.root = root
			if p.pattern(text, r) != nil {
				continue
			}
			for _, g := range p.Grants {
				if !inside(root, g.Path) {
					t.Errorf("%q grants %s", text, g.Path)
				}
			}
			for _, name := range append(p.dirs, p.files...) {
				if !filepath.IsLocal(name) {
					t.Errorf("%q makes %s", text, name)
				}
			}
		}
	})
}
