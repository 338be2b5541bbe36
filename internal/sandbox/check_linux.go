package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// checkLimit is how long all of a check may take.
const checkLimit = 20 * time.Second

// Check tries each part of the sandbox for real, which takes a fraction of a
// second: it runs a program in it that does what it must not.
func Check(ctx context.Context) Report {
	r := Report{User: "an ordinary user", Holds: true}
	if os.Geteuid() == 0 {
		r.User = "root"
	}
	tried, err := tryAll(ctx)
	for _, part := range parts {
		switch got, ok := tried[part]; {
		case ok:
			r.Parts = append(r.Parts, got)
		default:
			r.Parts = append(r.Parts, Part{part, false, "not tried: " + err.Error()})
		}
		r.Holds = r.Holds && r.Parts[len(r.Parts)-1].Holds
	}
	return r
}

// tryAll tries the parts. If it breaks off, the error says why, and the parts
// that are known are still good.
func tryAll(ctx context.Context) (map[string]Part, error) {
	tried := map[string]Part{}
	dir, err := os.MkdirTemp("", "stoplog-check-")
	if err != nil {
		return tried, err
	}
	defer os.RemoveAll(dir)
	root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	if err := errors.Join(os.Mkdir(root, 0o700), os.WriteFile(outside, []byte("x"), 0o600)); err != nil {
		return tried, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return tried, err
	}
	defer l.Close()
	self, err := os.Executable()
	if err != nil {
		return tried, err
	}
	var said bytes.Buffer
	result, err := Run(ctx, Spec{
		Argv: []string{self, outside, l.Addr().String()}, as: probeName,
		Scope: Scope{Root: root}, Stdout: &said, Limits: Limits{Wall: checkLimit},
	})
	var refused *RefusedError
	if errors.As(err, &refused) {
		tried[refused.Part] = Part{refused.Part, false, refused.Err.Error()}
		return tried, fmt.Errorf("the sandbox was not built without its %s", refused.Part)
	}
	if err != nil {
		return tried, err
	}
	return tried, judge(tried, result, said.Bytes())
}

// judge reads what the probe has said, and looks at how it ended.
func judge(tried map[string]Part, r Result, said []byte) error {
	if r.End != Exited || r.Exit != 0 {
		return fmt.Errorf("the program that tries them %v (exit code %d)", r.End, r.Exit)
	}
	var found []Part
	if err := json.Unmarshal(said, &found); err != nil {
		return fmt.Errorf("read what the program that tries them says: %w", err)
	}
	for _, p := range found {
		if before, ok := tried[p.Name]; ok {
			p.Holds = p.Holds && before.Holds
			p.Detail = before.Detail + "; " + p.Detail
		}
		tried[p.Name] = p
	}
	// It left one process behind that began a session and ignores signals. Its
	// standard output was the pipe that was read to the end.
	tried[partDescendants] = Part{partDescendants, r.Left == 1, fmt.Sprintf("a process in a session of its own that ignores signals: ended with the program (%d seen)", r.Left)}
	return nil
}

// parts are the names of a report, in its order.
var parts = []string{
	partNamespaces, partMounts, partProc, partNetwork, partProcesses, partLimits, partCapabilities, partLandlock,
	partSeccomp, partDescendants,
}
