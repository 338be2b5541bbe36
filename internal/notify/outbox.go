package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Sink takes tickets to where people look. It is safe for use by several
// goroutines.
type Sink interface {
	// Name says which sink it is, and where it leads: it is on record.
	Name() string
	// Send takes a ticket there, and returns where it is.
	Send(ctx context.Context, t Filed) (where string, err error)
}

const (
	// Open is how long a ticket stands for its trouble after that was last seen.
	Open = 30 * 24 * time.Hour
	// sendTime is how long one delivery may take.
	sendTime = 30 * time.Second
	// round is how often the outbox looks for what is to be delivered again.
	round = 30 * time.Second
)

// Options of an outbox. Dir and NewID must be set.
type Options struct {
	// Dir is the outbox's folder, which is made. Any number of processes of this
	// machine may have it.
	Dir   string
	Sinks []Sink
	NewID func() (string, error)
	// Log is for operators; nil: nothing is said.
	Log *slog.Logger
	// Now is the clock; nil: the machine's.
	Now func() time.Time
}

// Outbox keeps tickets until every sink has them. It is safe for use by several
// goroutines.
type Outbox struct {
	Options
	wake chan struct{}
	quit chan struct{}
	done sync.WaitGroup
}

// entry is a ticket as it lies in the outbox.
type entry struct {
	Version int `json:"v"`
	Filed
	Seen int       `json:"seen"` // how often the trouble came
	Last time.Time `json:"last"` // when it came last
	// Sent is by sink: what has become of it there.
	Sent map[string]delivery `json:"sent,omitempty"`
}

type delivery struct {
	Where string    `json:"where,omitempty"` // where it is; empty: not there yet
	Tries int       `json:"tries"`
	Next  time.Time `json:"next,omitzero"` // when it is tried again
	Error string    `json:"error,omitempty"`
}

// New returns an outbox that delivers. Close it.
func New(o Options) (*Outbox, error) {
	if o.Dir == "" || o.NewID == nil {
		return nil, errors.New("make an outbox: it needs a folder and ids")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make an outbox: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	b := &Outbox{Options: o, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	b.done.Go(b.loop)
	return b, nil
}

// loop delivers, now and then and when there is something new.
func (o *Outbox) loop() {
	ticker := time.NewTicker(round)
	defer ticker.Stop()
	for {
		select {
		case <-o.quit:
			return
		case <-o.wake:
		case <-ticker.C:
		}
		ctx, stop := context.WithCancel(context.Background())
		over := make(chan struct{})
		go func() { // which ends with the round
			select {
			case <-o.quit:
				stop()
			case <-over:
			}
		}()
		o.Deliver(ctx)
		close(over)
		stop()
	}
}

// Close ends the outbox. What is left to deliver is tried once more, until ctx ends;
// the rest waits for who opens the outbox next.
func (o *Outbox) Close(ctx context.Context) {
	close(o.quit)
	o.done.Wait()
	o.Deliver(ctx)
}

// File keeps a ticket, and returns its id. A ticket whose digest another open one
// has is that one.
func (o *Outbox) File(t Ticket) (id string, isNew bool, err error) {
	if len(t.Digest) != 64 || strings.ContainsFunc(t.Digest, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) {
		return "", false, fmt.Errorf("file a ticket: %q is no digest", t.Digest)
	}
	unlock, err := o.lock("outbox", true)
	if err != nil {
		return "", false, fmt.Errorf("file a ticket: %w", err)
	}
	defer unlock()
	index := filepath.Join(o.Dir, t.Digest+".ticket")
	if old, err := o.same(index); err != nil {
		return "", false, fmt.Errorf("file a ticket: %w", err)
	} else if old != nil && o.Now().Sub(old.Last) < Open {
		old.Seen, old.Last = old.Seen+1, o.Now().UTC()
		return old.ID, false, o.keep(*old)
	}
	if id, err = o.NewID(); err != nil {
		return "", false, fmt.Errorf("file a ticket: %w", err)
	}
	e := entry{Version: 1, Filed: Filed{Ticket: t, ID: id}, Seen: 1, Last: o.Now().UTC()}
	if err := errors.Join(o.keep(e), write(index, []byte(id+"\n"))); err != nil {
		return "", false, fmt.Errorf("file a ticket: %w", err)
	}
	select {
	case o.wake <- struct{}{}:
	default: // it has not looked since it was woken last
	}
	return id, true, nil
}

// same is the ticket of a digest's index; nil if there is none.
func (o *Outbox) same(index string) (*entry, error) {
	b, err := os.ReadFile(index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e, err := o.read(strings.TrimSpace(string(b)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // somebody took it away
	}
	return &e, err
}

func (o *Outbox) path(id string) string { return filepath.Join(o.Dir, filepath.Base(id)+".json") }

func (o *Outbox) read(id string) (e entry, err error) {
	b, err := os.ReadFile(o.path(id))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return e, fmt.Errorf("read ticket %s: %w", id, err)
	}
	if e.Version != 1 {
		return e, fmt.Errorf("read ticket %s: a newer stoplog wrote it", id)
	}
	return e, nil
}

func (o *Outbox) keep(e entry) error {
	b, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return write(o.path(e.ID), append(b, '\n'))
}

// write replaces a file, and returns when that is durable.
func write(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// errBusy: another process delivers the ticket.
var errBusy = errors.New("somebody else has it in hand")

// lock takes a right that one goroutine of one process has at a time.
func (o *Outbox) lock(name string, wait bool) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(o.Dir, "."+filepath.Base(name)+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errBusy
		}
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // which gives the right up
}

// Deliver gives each sink the tickets that are due there, once.
func (o *Outbox) Deliver(ctx context.Context) {
	files, err := filepath.Glob(filepath.Join(o.Dir, "tkt_*.json"))
	if err != nil {
		o.Log.Error("look for tickets", "err", err)
		return
	}
	for _, file := range files {
		if ctx.Err() != nil {
			return
		}
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		if err := o.deliver(ctx, id); err != nil && !errors.Is(err, errBusy) {
			o.Log.Error("deliver a ticket", "ticket", id, "err", err)
		}
	}
}

// deliver takes a ticket to the sinks that do not have it.
func (o *Outbox) deliver(ctx context.Context, id string) error {
	e, err := o.read(id)
	if err != nil {
		return err
	}
	if !o.due(e) {
		return nil
	}
	unlock, err := o.lock(id, false)
	if err != nil {
		return err
	}
	defer unlock()
	if e, err = o.read(id); err != nil {
		return err
	}
	for _, sink := range o.Sinks {
		d := e.Sent[sink.Name()]
		if d.Where != "" || o.Now().Before(d.Next) {
			continue
		}
		d = o.send(ctx, sink, e.Filed, d)
		if err := o.settle(id, sink.Name(), d); err != nil {
			return err
		}
	}
	return nil
}

// due reports whether there is a sink that is to be given a ticket now.
func (o *Outbox) due(e entry) bool {
	for _, sink := range o.Sinks {
		if d := e.Sent[sink.Name()]; d.Where == "" && !o.Now().Before(d.Next) {
			return true
		}
	}
	return false
}

// send tries a sink once. A panic of a sink is its own failure.
func (o *Outbox) send(ctx context.Context, sink Sink, t Filed, d delivery) (after delivery) {
	ctx, stop := context.WithTimeout(ctx, sendTime)
	defer stop()
	after = delivery{Tries: d.Tries + 1}
	fail := func(err error) {
		o.Log.Warn("a ticket was not taken", "ticket", t.ID, "sink", sink.Name(), "err", err)
		after.Where, after.Error, after.Next = "", err.Error(), o.Now().UTC().Add(backoff(after.Tries))
	}
	defer func() {
		if v := recover(); v != nil {
			fail(fmt.Errorf("panic: %v", v))
		}
	}()
	where, err := sink.Send(ctx, t)
	if err != nil {
		fail(err)
		return after
	}
	after.Where = cmp.Or(where, "taken")
	return after
}

// backoff is how long to wait behind a number of tries: from half a minute to an
// hour.
func backoff(tries int) time.Duration {
	return min(30*time.Second<<min(tries-1, 10), time.Hour)
}

// settle writes down what came of a sink. What else has happened to the ticket
// meanwhile stays.
func (o *Outbox) settle(id, sink string, d delivery) error {
	unlock, err := o.lock("outbox", true)
	if err != nil {
		return err
	}
	defer unlock()
	e, err := o.read(id)
	if err != nil {
		return err
	}
	if e.Sent == nil {
		e.Sent = map[string]delivery{}
	}
	e.Sent[sink] = d
	return o.keep(e)
}
