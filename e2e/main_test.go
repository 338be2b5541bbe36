package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// checks counts the answers of clients that were looked at and found right.
var checks atomic.Int64

// fewest is how many there must be for the suite to mean anything.
const fewest = 311

// fewestOfClaude is how many more there must be where claude was asked.
const fewestOfClaude = 9

// claudeAsked says that the tests of claude were not skipped.
var claudeAsked atomic.Bool

// program is the path of the built stoplog, libraryProgram that of the example of
// docs/library.md, noNode why the JavaScript clients
// can't be asked, if they can't.
var (
	program, libraryProgram string
	noNode                  error
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run builds what the tests need, runs them, and says how many clients' answers
// they saw. Without node there is nothing to install the JavaScript clients
// with; that is accepted anywhere but in CI, and said.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "stoplog-e2e-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program, err = build(dir, "stoplog", "..", "./cmd/stoplog"); err != nil {
		fmt.Println(err)
		return 1
	}
	if libraryProgram, err = build(dir, "library", ".", "./library"); err != nil {
		fmt.Println(err)
		return 1
	}
	if noNode = installNodeClients(); noNode != nil {
		if os.Getenv("CI") == "true" {
			fmt.Println(noNode)
			return 1
		}
		fmt.Println("JavaScript clients are skipped:", noNode)
	}
	if err := isolate(dir); err != nil {
		fmt.Println(err)
		return 1
	}

	code := m.Run()
	if err := node.stop(); err != nil {
		fmt.Println("node ask.mjs:", err)
		code = 1
	}
	fmt.Printf("client checks: %d\n", checks.Load())
	all := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == ""
	want := int64(fewest)
	if claudeAsked.Load() {
		want += fewestOfClaude
	}
	if code == 0 && all && noNode == nil && checks.Load() < want {
		fmt.Printf("want at least %d client checks\n", want)
		return 1
	}
	return code
}

// build builds a program of the module in a folder, with the race detector if
// these tests have it.
func build(dir, name, module, pkg string) (string, error) {
	out := filepath.Join(dir, name)
	args := []string{"build", "-o", out}
	if raceDetector {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = module
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, said)
	}
	return out, nil
}

// installNodeClients installs what package-lock.json names, unless that was
// done since it last changed.
func installNodeClients() error {
	if _, err := exec.LookPath("node"); err != nil {
		return err
	}
	lock, err := os.Stat("package-lock.json")
	if err != nil {
		return err
	}
	// npm writes this file last.
	if done, err := os.Stat("node_modules/.package-lock.json"); err == nil && !done.ModTime().Before(lock.ModTime()) {
		return nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	said, err := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error").CombinedOutput()
	if err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, said)
	}
	return nil
}

// isolate empties the environment of everything that clients and program could
// take keys, addresses or settings from, and gives them an empty home.
func isolate(dir string) error {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "TMPDIR", "CI", "GORACE":
		default:
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	return os.Setenv("HOME", home)
}
