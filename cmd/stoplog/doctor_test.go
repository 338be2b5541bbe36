package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/internal/sandbox"
)

// The real program tries each part on this machine, and its exit code says what
// its report does.
func TestDoctor(t *testing.T) {
	out, err := exec.Command(binary, "doctor", "--json").Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var h health
	if err := json.Unmarshal(out, &h); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if holds := err == nil; h.Sandbox.Holds != holds || len(h.Sandbox.Parts) != 10 {
		t.Errorf("exit %v, report %+v", err, h)
	}
	if !h.Sandbox.Holds {
		if os.Getenv("CI") == "true" {
			t.Errorf("this machine has no sandbox to give: %s", out)
		}
		t.Skip("this machine has no sandbox to give")
	}
	text, err := exec.Command(binary, "doctor").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range h.Sandbox.Parts {
		if !regexp.MustCompile(`(?m)^  ` + p.Name + ` +holds  `).Match(text) {
			t.Errorf("no line for %s in\n%s", p.Name, text)
		}
	}
}

func TestDoctorPrint(t *testing.T) {
	var out bytes.Buffer
	h := health{sandbox.Report{User: "root", Parts: []sandbox.Part{{Name: "mounts", Holds: true, Detail: "a"}, {Name: "proc", Detail: "b"}}}}
	if err := h.print(&world{stdout: &out}); err != nil {
		t.Fatal(err)
	}
	want := "sandbox   for root\n  mounts  holds  a\n  proc    FAILS  b\n"
	if got := out.String(); strings.TrimRight(got, " ") != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}
