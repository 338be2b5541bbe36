package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/stoplog/stoplog/guard"
)

// finding is how `stoplog guard` shows a finding: on a line of the report, and
// in a line of ndjson. Offsets are bytes of the text, all of it so far joined.
type finding struct {
	Guard       string `json:"guard"`
	Rule        string `json:"rule"`
	Start       int64  `json:"start"`
	End         int64  `json:"end"`
	Verdict     string `json:"verdict"`
	Fingerprint string `json:"fingerprint"`
}

// final returns the findings that became final with a step. One whose search was
// cut is left out until its end is known.
func final(step guard.Step) (fs []finding) {
	for _, d := range step.Decisions {
		if d.End == guard.Open {
			continue
		}
		fs = append(fs, finding{d.Guard, d.Rule, d.Start, d.End, d.Verdict.String(), d.Fingerprint})
	}
	return fs
}

// A report takes the findings, one a line. A finding is in it before the text
// that follows on it is shown. The zero report takes nothing.
type report struct {
	w    io.Writer
	name string
}

// openReport begins the report in a file of that name; without a name it is the
// zero report. What was found says where to look, so the file is its owner's.
func openReport(name string) (report, error) {
	if name == "" {
		return report{}, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return report{}, fmt.Errorf("opening the report: %w", err)
	}
	return report{w: f, name: name}, nil
}

func (r report) close() error {
	c, ok := r.w.(io.Closer)
	if !ok {
		return nil
	}
	if err := c.Close(); err != nil {
		return fmt.Errorf("closing the report: %w", err)
	}
	return nil
}

func (r report) add(fs []finding) error {
	if r.w == nil || len(fs) == 0 {
		return nil
	}
	var lines bytes.Buffer
	enc := newEncoder(&lines)
	for _, f := range fs {
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	if _, err := r.w.Write(lines.Bytes()); err != nil {
		return fmt.Errorf("writing the report %s: %w", r.name, err)
	}
	return nil
}

// newEncoder writes JSON as a reader of logs wants it: < and & as they are.
func newEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}
