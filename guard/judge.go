package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A judge is one guard's screen on one channel, held to its contract: what it
// reports is checked, and a panic is an error like any other.
type judge struct {
	name    string
	guard   Guard
	mode    Mode
	screen  Screen
	read    int64 // bytes written to it
	settled int64
	most    int64     // bytes that waited in shadow, at multiples of lookEvery
	open    []Finding // reported without their end, which is still to come
	failed  error
}

var errContract = errors.New("the guard broke its contract")

// write hands on the next piece; a failed judge takes nothing more.
func (j *judge) write(p []byte) ([]Finding, error) {
	if j.failed != nil {
		return nil, nil
	}
	j.read += int64(len(p))
	return j.take(func() (Progress, error) { return j.screen.Write(p) }, false)
}

func (j *judge) close() ([]Finding, error) {
	if j.failed != nil {
		return nil, nil
	}
	return j.take(j.screen.Close, true)
}

func (j *judge) take(call func() (Progress, error), last bool) ([]Finding, error) {
	pr, err := guarded(call)
	if bad := j.check(pr, last && err == nil); bad != nil {
		j.failed = errors.Join(bad, err)
		return nil, j.failed
	}
	j.settled = pr.Settled
	j.failed = err
	return pr.Findings, err
}

// guarded turns a panic into an error.
func guarded(call func() (Progress, error)) (pr Progress, err error) {
	defer func() {
		if r := recover(); r != nil {
			pr, err = Progress{}, fmt.Errorf("the guard panicked: %v", r)
		}
	}()
	return call()
}

// check holds a progress against the contract of [Screen].
func (j *judge) check(pr Progress, last bool) error {
	if pr.Settled < j.settled || pr.Settled > j.read || last && pr.Settled != j.read {
		return fmt.Errorf("%w: settled %d after %d, with %d bytes read", errContract, pr.Settled, j.settled, j.read)
	}
	for _, f := range pr.Findings {
		if f.Start < 0 || f.End > j.read || f.End != Open && f.End <= f.Start {
			return fmt.Errorf("%w: finding %s at [%d, %d) in a text of %d bytes", errContract, f.Rule, f.Start, f.End, j.read)
		}
		cut := slices.IndexFunc(j.open, func(o Finding) bool { return o.Start == f.Start && o.Rule == f.Rule })
		switch {
		case cut >= 0 && f.End >= j.settled:
			j.open = slices.Delete(j.open, cut, cut+1)
		case f.Start < j.settled:
			return fmt.Errorf("%w: finding %s at %d after %d was settled", errContract, f.Rule, f.Start, j.settled)
		case f.End == Open:
			j.open = append(j.open, f)
		}
	}
	if last && len(j.open) > 0 {
		return fmt.Errorf("%w: the text ended and the end of %d findings is not known", errContract, len(j.open))
	}
	return nil
}

// An auditor is the screen of a guard in Audit mode: it keeps both ends of the
// text and has them judged when the text has ended.
type auditor struct {
	ctx     context.Context
	guard   Guard
	channel Channel
	head    []byte
	tail    []byte // at most 2·AuditBytes, cut back to AuditBytes when full
	read    int64
}

func (a *auditor) Write(p []byte) (Progress, error) {
	a.read += int64(len(p))
	n := min(AuditBytes-len(a.head), len(p))
	a.head = append(a.head, p[:n]...)
	p = p[n:]
	if len(p) >= AuditBytes {
		a.tail = append(a.tail[:0], p[len(p)-AuditBytes:]...)
	} else {
		if len(a.tail)+len(p) > 2*AuditBytes {
			a.tail = a.tail[:copy(a.tail, a.tail[len(a.tail)-AuditBytes:])]
		}
		a.tail = append(a.tail, p...)
	}
	return Progress{}, nil // nothing is settled before the end
}

func (a *auditor) Close() (Progress, error) {
	done := Progress{Settled: a.read}
	if a.read <= 2*AuditBytes {
		fs, err := a.judge(append(a.head, a.tail...), 0)
		done.Findings = fs
		return done, err
	}
	tail := a.tail[max(0, len(a.tail)-AuditBytes):]
	fs, err := a.judge(a.head, 0)
	if err == nil {
		var more []Finding
		more, err = a.judge(tail, a.read-int64(len(tail)))
		fs = append(fs, more...)
	}
	done.Findings = fs
	return done, err
}

// judge runs a screen of the guard over one end of the text, which starts at
// base.
func (a *auditor) judge(text []byte, base int64) ([]Finding, error) {
	j := &judge{screen: open(a.ctx, a.guard, a.channel)}
	var out []Finding
	for _, call := range []func() ([]Finding, error){func() ([]Finding, error) { return j.write(text) }, j.close} {
		fs, err := call()
		for _, f := range fs {
			if f.End == Open {
				continue // it is reported again when its end is known
			}
			f.Start += base
			f.End += base
			out = append(out, f)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}
