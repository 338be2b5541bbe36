package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunAtTerminal answers a pause in place: the run shows what it is about, a no
// ends it and a yes lets it go on, in one command.
func TestRunAtTerminal(t *testing.T) {
	for answer, code := range map[string]int{"y because\n": 0, "n not today\n": 3, "\n": 4} {
		t.Run(strings.TrimSpace(answer), func(t *testing.T) {
			dir := t.TempDir()
			const pb = `playbook: gate
steps:
  - {id: confirm, type: pause, reason: deploy it}
  - id: work
    type: run
    run: /usr/bin/echo deployed it
    scope: {can_read: [], can_write: [], can_run: [/usr/bin/echo]}
    effect: irreversible
`
			if err := os.WriteFile(filepath.Join(dir, "pb.yaml"), []byte(pb), 0o600); err != nil {
				t.Fatal(err)
			}
			person, program := openTerminal(t)
			c := exec.CommandContext(t.Context(), binary, "run", "pb.yaml", "--store", filepath.Join(dir, "s.db"), "--by", "ann")
			c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, program, program, program
			c.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + dir}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			d := &dialogue{t: t, person: person}
			d.until(`"reason": "deploy it"`)
			d.until("approve it? ")
			d.types(answer)
			want := map[int]string{0: "work     run    passed", 3: "denied by ann: not today", 4: "hint: decide with `stoplog approve apr_"}[code]
			d.until(want)
			if code == 0 && !strings.Contains(d.seen.String(), "work | deployed it") {
				t.Errorf("it showed\n%s", d.seen.String())
			}
			err := c.Wait()
			var exit *exec.ExitError
			if got := 0; errors.As(err, &exit) {
				got = exit.ExitCode()
				if got != code {
					t.Errorf("exit code %d, want %d", got, code)
				}
			} else if err != nil || code != 0 {
				t.Errorf("it ended with %v, want code %d", err, code)
			}
		})
	}
}
