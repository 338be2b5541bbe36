package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a program that runs in a sandbox.
type Process struct {
	warden   *exec.Cmd
	channel  channel
	began    time.Time
	output   atomic.Int64
	scratch  *scratch
	plan     Plan
	made     []string
	services sync.WaitGroup

	mu     sync.Mutex
	forced End // why we ended it, if we did

	done   chan struct{} // closed when result is there
	result Result
}

// Start starts a program. If part of the sandbox can not hold, or the scope asks
// for what can not be given, nothing is run and the error is a [*RefusedError]; it
// is another one if this machine is out of something. The program ends with ctx.
// Whoever starts a program waits for it.
func Start(ctx context.Context, s Spec) (*Process, error) {
	if !begins.Load() {
		return nil, refuse(partProgram, errors.New("this process does not begin with sandbox.Main, which makes its children what they are to be"))
	}
	s.Limits = s.Limits.complete()
	if err := s.addProxy(); err != nil {
		return nil, &RefusedError{"scope", err}
	}
	if len(s.Services) > mostServices {
		return nil, &RefusedError{"scope", fmt.Errorf("%d services are more than %d", len(s.Services), mostServices)}
	}
	own, err := newScratch()
	if err != nil {
		return nil, err
	}
	own.into(&s)
	p := &Process{scratch: own, done: make(chan struct{})}
	if p.plan, err = s.Resolve(); err == nil {
		p.made, err = p.plan.prepare()
	}
	if err == nil {
		err = p.start(ctx, s)
	}
	if err != nil {
		p.tidy()
		return nil, err
	}
	return p, nil
}

// complete puts the defaults in.
func (l Limits) complete() Limits {
	fill := func(v *uint64, standard uint64) {
		if *v == 0 {
			*v = standard
		}
	}
	fill(&l.FileSize, 1<<30)
	fill(&l.Files, 4096)
	fill(&l.Processes, 1024)
	if l.Output == 0 {
		l.Output = 64 << 20
	}
	return l
}

// start starts the warden, hears that the program runs, and looks after both from
// then on.
func (p *Process) start(ctx context.Context, s Spec) error {
	o := order{
		Program: p.plan.Program, Argv: s.Argv, Env: s.Env, Dir: p.plan.Dir,
		Grants: p.plan.Grants, Covered: p.plan.Covered, Limits: s.Limits,
	}
	if s.as != "" {
		o.Argv = append([]string{s.as}, s.Argv[1:]...)
	}
	for _, service := range s.Services {
		o.Ports = append(o.Ports, service.Port)
	}
	orders, give, err := o.pipe()
	if err != nil {
		return err
	}
	ours, theirs, err := channels()
	if err != nil {
		orders.Close()
		give()
		return err
	}
	p.channel = ours
	p.warden = wardenCommand(orders, theirs)
	streams := p.streams(s)
	p.began = time.Now()
	err = p.warden.Start()
	orders.Close() // so that theirs is the only reader
	theirs.Close() // so that the warden's end is the end of what it says
	give()
	if err != nil {
		ours.conn.Close()
		return refuse(partNamespaces, fmt.Errorf("make namespaces for it: %w", namespaceHint(err)))
	}
	stop := context.AfterFunc(ctx, func() { p.end(Cancelled) })
	listeners, err := p.hearStart()
	if err != nil && !p.endedBy(Flooded) { // a program can flood before we hear that it runs
		stop()
		p.warden.Process.Kill()
		p.warden.Wait()
		ours.conn.Close()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	p.serve(s.Services, listeners)
	go p.look(s.Limits, streams, listeners, stop)
	return nil
}

// wardenCommand is this program again, as process 1 of new namespaces. As root
// it needs no user namespace; anybody else gets one in which its own number is
// the only one.
func wardenCommand(orders, report *os.File) *exec.Cmd {
	uid, gid := os.Geteuid(), os.Getegid()
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Setsid:     true,
	}
	if uid != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP}
	}
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{wardenName}, Env: []string{},
		ExtraFiles: []*os.File{orders, report}, SysProcAttr: attr,
	}
}

// streams connects the program's streams, and counts what it writes.
func (p *Process) streams(s Spec) *exec.Cmd {
	c := p.warden
	c.Stdin = s.Stdin
	one := &sync.Mutex{}
	out := &counted{p, one, s.Stdout, s.Limits.Output}
	c.Stdout, c.Stderr = out, out // one pipe, which keeps the order
	if !same(s.Stdout, s.Stderr) {
		c.Stderr = &counted{p, one, s.Stderr, s.Limits.Output}
	}
	return c
}

// same reports whether two writers are one.
func same(a, b io.Writer) bool {
	defer func() { recover() }() // of types that can not be compared
	return a == b
}

// counted takes what a program writes, up to a number of bytes.
type counted struct {
	process *Process
	one     *sync.Mutex // both streams may lead to one writer
	to      io.Writer
	most    int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.one.Lock()
	defer c.one.Unlock()
	before := c.process.output.Load()
	room := max(0, c.most-before)
	c.process.output.Add(int64(len(b)))
	if int64(len(b)) > room {
		c.process.end(Flooded)
	}
	if c.to == nil {
		return len(b), nil
	}
	if _, err := c.to.Write(b[:min(int64(len(b)), room)]); err != nil {
		c.process.end(Killed)
	}
	return len(b), nil // the program may as well go on: its end is near
}

// hearStart waits until the program runs, or until somebody says why not.
func (p *Process) hearStart() ([]net.Listener, error) {
	var listeners []net.Listener
	for {
		r, files, err := p.channel.hear()
		if err == nil && r.Refused != nil {
			err = r.Refused.err()
		}
		for _, f := range files {
			l, openErr := net.FileListener(f)
			f.Close()
			if openErr != nil {
				err = errors.Join(err, openErr)
				continue
			}
			listeners = append(listeners, l)
		}
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			var r *RefusedError
			if errors.As(err, &r) {
				return nil, err
			}
			return nil, refuse(partNamespaces, fmt.Errorf("the sandbox's first process ended without a word: %w", err))
		}
		if r.Started {
			return listeners, nil
		}
	}
}

// serve hands the listeners to the services.
func (p *Process) serve(services []Service, listeners []net.Listener) {
	for i, l := range listeners {
		p.services.Go(func() { services[i].Serve(l) })
	}
}

// look waits for the program's end, sees to it where it is late, and puts down
// how it came.
func (p *Process) look(l Limits, warden *exec.Cmd, listeners []net.Listener, stop func() bool) {
	defer close(p.done)
	if l.Wall > 0 {
		timer := time.AfterFunc(l.Wall-time.Since(p.began), func() { p.end(TimedOut) })
		defer timer.Stop()
	}
	r := Result{End: Lost}
	heard, _, err := p.channel.hear()
	if e := heard.Ended; err == nil && e != nil {
		r.Exit, r.Signal, r.Left = e.Exit, e.Signal, e.Left
		if r.End = Exited; e.Signal != 0 {
			r.End = Signalled
		}
	}
	// The warden ends now, or was ended; the kernel lets nobody see its end before
	// every process of its namespace is gone.
	warden.Process.Kill()
	warden.Wait()
	stop()
	r.Wall = time.Since(p.began)
	p.channel.conn.Close()
	for _, l := range listeners {
		l.Close()
	}
	p.services.Wait()
	r.Output = p.output.Load()
	p.mu.Lock()
	if p.forced != Lost {
		r.End, r.Exit, r.Signal = p.forced, 0, 0
	}
	p.mu.Unlock()
	p.tidy()
	p.result = r
}

// end ends the program, for a reason; the first one counts.
func (p *Process) end(why End) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forced == Lost {
		p.forced = why
	}
	p.warden.Process.Kill()
}

// endedBy reports whether we ended the program, for a reason.
func (p *Process) endedBy(why End) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forced == why
}

// Kill ends the program and everything that it started. It does not wait. What
// has ended already stays as it is.
func (p *Process) Kill() { p.end(Killed) }

// Wait returns when the program, everything that it started and every service
// has ended, and its last output was written.
func (p *Process) Wait() Result {
	<-p.done
	return p.result
}

// Done is closed when Wait returns at once.
func (p *Process) Done() <-chan struct{} { return p.done }

// Plan is what the kernel was told.
func (p *Process) Plan() Plan { return p.plan }

func (p *Process) tidy() {
	p.plan.tidy(p.made)
	p.scratch.remove()
}

// namespaceHint says what an ordinary user lacks.
func namespaceHint(err error) error {
	if os.Geteuid() == 0 || !slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS}, func(e error) bool {
		return errors.Is(err, e)
	}) {
		return err
	}
	return fmt.Errorf("%w (may an ordinary user make user namespaces here? See kernel.unprivileged_userns_clone, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)", err)
}
