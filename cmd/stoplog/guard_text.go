package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/stoplog/stoplog/guard"
)

// pieceSize is the most that is read at once. What comes sooner in smaller
// pieces is judged, and written on, as it comes.
const pieceSize = 64 << 10

// filterText writes what it reads, as far as it may leave, at once.
func filterText(in io.Reader, out io.Writer, filter *guard.Filter, rep report) error {
	piece := make([]byte, pieceSize)
	var released []byte
	for {
		n, readErr := in.Read(piece)
		var step guard.Step
		released, step = filter.Write(released[:0], piece[:n])
		if err := show(out, released, step, rep); err != nil {
			return err
		}
		if readErr == nil {
			continue
		}
		// However the text ended, what is held is decided.
		released, step = filter.Close(released[:0])
		if err := show(out, released, step, rep); err != nil {
			return err
		}
		if !errors.Is(readErr, io.EOF) {
			return fmt.Errorf("reading stdin: %w", readErr)
		}
		return nil
	}
}

// show reports what a step found, writes what it released, and says what it
// stopped, in this order.
func show(out io.Writer, released []byte, step guard.Step, rep report) error {
	if err := rep.add(final(step)); err != nil {
		return err
	}
	if len(released) > 0 {
		if _, err := out.Write(released); err != nil {
			return fmt.Errorf("writing stdout: %w", err)
		}
	}
	if step.Stop != nil {
		return stopped(step)
	}
	return nil
}

// stopped is the outcome of a text that policy ended.
func stopped(step guard.Step) error {
	s := step.Stop
	for _, d := range step.Decisions {
		if d.Err != nil {
			return failf(exitBlocked, "stdin: stopped at byte %d: the guard failed: %w", s.At, d.Err)
		}
	}
	return failf(exitBlocked, "stdin: stopped at byte %d by rule %s", s.At, s.Rule)
}
