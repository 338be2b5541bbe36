// Package requestlog keeps what the door says about its requests in the journal,
// where each request is a run of kind request ([journal.Requests]):
//
//	govern.Record{Run, Fact} ──► Log ──► started    the run is made, and held
//	                                     verdict    …
//	                                     settled    the run has its end
//
// A verdict that holds something back is durable when Record returns. The rest
// follows with the journal's next commit; what of it could not be kept is an
// error of the request's next fact.
package requestlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/journal"
)

// lease is how long a request is held without being renewed: as long as an
// engine's runs.
const lease = 15 * time.Second

// Log writes requests down. It is safe for use by several goroutines.
type Log struct {
	ids *journal.IDs

	mu       sync.Mutex
	requests journal.Requests
	open     map[string][]*journal.Pending // what is not known to be kept, by request
}

// New returns a log in a journal. Hold is called before the first request.
func New(store journal.Store) *Log {
	return &Log{
		ids:      journal.NewIDs(time.Now, rand.Reader),
		requests: journal.Requests{Store: store, Tenant: journal.DefaultTenant, Lease: lease},
		open:     map[string][]*journal.Pending{},
	}
}

// Hold says under whose name requests are held: an engine's, which renews their
// leases; if this process dies, another's sweep settles them as abandoned.
func (l *Log) Hold(w journal.Worker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests.Worker = w
}

var errBefore = errors.New("an earlier fact of the request was not kept")

// Record keeps facts about one request, in order, in one write. It is a
// govern.Config.Record.
func (l *Log) Record(records ...govern.Record) error {
	if len(records) == 0 {
		return nil
	}
	known, err := l.before(records)
	if err != nil {
		return err
	}
	if !known {
		if records, err = l.aside(records); err != nil {
			return err
		}
	}
	var facts []journal.RequestFact
	for _, r := range records {
		facts = append(facts, journal.RequestFact{Run: journal.ID(r.Run), At: r.At, Kind: kindOf(r.Fact), Payload: r.Fact})
	}
	l.mu.Lock()
	requests := l.requests
	l.mu.Unlock()
	wait := slices.ContainsFunc(records, acted)
	p, err := requests.Append(context.Background(), wait, facts...)
	if err == nil && !wait && known {
		l.after(records, p)
	}
	return err
}

// before reports whether records are about a request, and an error if what was
// said of it before could not be kept.
func (l *Log) before(records []govern.Record) (known bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := records[0].Run
	if _, ok := records[0].Fact.(govern.Started); ok {
		l.open[id] = nil
	}
	pending, known := l.open[id]
	if err := lost(pending); err != nil {
		return known, err
	}
	if _, ok := records[len(records)-1].Fact.(govern.Settled); ok {
		delete(l.open, id)
	}
	return known, nil
}

// Leave gives a request up to whoever goes on with its record: what was said of it
// so far is durable with the store's next commit. It fails if something of that was
// not kept.
func (l *Log) Leave(run string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := lost(l.open[run])
	delete(l.open, run)
	return err
}

// lost says what of earlier facts was not kept; nil while nothing is known to be.
func lost(pending []*journal.Pending) error {
	for _, p := range pending {
		if err := p.Err(); err != nil {
			return fmt.Errorf("%w: %w", errBefore, err)
		}
	}
	return nil
}

// after notes what was not waited for, of a request that has not ended.
func (l *Log) after(records []govern.Record, p *journal.Pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pending, ok := l.open[records[0].Run]; ok {
		l.open[records[0].Run] = append(pending, p)
	}
}

// aside makes a request of verdicts that are about none: those on the tool calls
// of a run, whose own log is its worker's alone. It is a part of that run.
func (l *Log) aside(records []govern.Record) ([]govern.Record, error) {
	id, err := l.ids.New(journal.RunPrefix)
	if err != nil {
		return nil, err
	}
	parent, at := records[0].Run, records[0].At
	all := []govern.Record{{At: at, Fact: govern.Started{Mount: "tool", Parent: parent}}}
	all = append(all, records...)
	all = append(all, govern.Record{At: at, Fact: govern.Settled{Status: "completed", Reason: "completed"}})
	for i := range all {
		all[i].Run = string(id)
	}
	return all, nil
}

// acted reports whether a record is a verdict that changed something: it must be
// durable before anything goes on.
func acted(r govern.Record) bool {
	v, ok := r.Fact.(govern.Verdict)
	return ok && v.Mode == guard.Enforce && v.Verdict > guard.Allow
}

// kindOf is a fact's name in the journal.
func kindOf(f govern.Fact) string {
	switch f.(type) {
	case govern.Started:
		return journal.RequestStarted
	case govern.Verdict:
		return journal.RequestVerdict
	case govern.Settled:
		return journal.RequestSettled
	}
	panic(fmt.Sprintf("requestlog: the door says a %T", f))
}
