// Package api is the control interface: how people's programs talk to agents, see
// runs and decide what runs ask, over HTTP, on the same listener as the gateway
// and on a socket beside the store.
//
//	POST /chat/stream                   say something, or go on; events, or their Done
//	GET  /v1/playbooks                  runs of playbooks, and where their steps stand
//	GET  /v1/playbooks/{run}            one of them
//	GET  /v1/runs                       runs, the newest first
//	GET  /v1/runs/{run}                 one run, and how it stands
//	GET  /v1/runs/{run}/events          its events, from an id on
//	POST /v1/runs/{run}/cancel          end it
//	POST /v1/runs/{run}/resolve         say what became of a call in doubt
//	GET  /v1/budgets                    what was spent on a day, and what may be
//	GET  /v1/approvals                  questions to people
//	GET  /v1/approvals/{id}             one, with all that a decision binds to
//	POST /v1/approvals/{id}/approve     yes
//	POST /v1/approvals/{id}/deny        no
//	POST /v1/approvals/{id}/answer      words, where the model asked for them
//	GET  /v1/approvals/{id}/answer      the answer that was withheld, once it is approved, to who asked for it
//	GET  /v1/approvals/{id}/withheld    the same before that, to who may decide
//
// # Laws
//
// A policy outcome is HTTP 200 with a status of its own. An error is a request
// that was not carried out: an object `error` with a code of [Code] and a
// sentence.
//
// Strict: an unknown member, an unknown parameter, a second value, a body that is
// too large or is not JSON is refused, and what was wrong is named.
//
// Who reads does not hold up who runs: a stream reads the journal at its own
// pace, and one whose client does not read is cut off.
//
// Whoever may connect to the socket, which is its owner's alone, may do all of
// it. On a listener ([Server.Behind]) callers are told apart by keys: each route
// says which act it is, the key's role whether that is allowed, and who decides is
// the key's name and no claim. Where no key is asked for the listener is on
// loopback.
//
// Pages of other sites cannot get at it through a browser: requests come under a
// name of this machine, a post is of JSON, and none is from another origin. Where
// keys are required the name may be another: a page of another site has no key.
//
// The routes are plain net/http. Three of them are streams or may be one, and what
// is left of a framework then is worth less than having every refusal in one form
// here; the table of routes is what a description is to be generated from.
package api

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/auth"
	"github.com/stoplog/stoplog/internal/budget"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// Engine is what carries out what is asked here.
type Engine interface {
	chat.Engine
	// Decide takes a person's decision and goes on with the run.
	Decide(ctx context.Context, tenant string, d approval.Decision) (journal.Question, error)
	// Cancel asks for the end of a run.
	Cancel(ctx context.Context, ref journal.Ref, by string) error
	// Resolve carries out what a person says of a call in doubt.
	Resolve(ctx context.Context, ref journal.Ref, r Resolution) error
}

// Resolution is what a person says of a call in doubt.
type Resolution struct {
	Step, Call int // 0: the only one in doubt
	Choice     run.Choice
	By         string
	Text       string // the call's result, where it is taken as done
}

// Options of a server. Store, Engine and IDs must be set.
type Options struct {
	Store  journal.Store
	Engine Engine
	IDs    *journal.IDs
	Tenant string // empty: journal.DefaultTenant
	// Ledger and Envelopes are the budgets; a nil Ledger: there are none to show.
	Ledger    budget.Ledger
	Envelopes []budget.Envelope
	// Answers gives out answers that were withheld; nil: there are none.
	Answers Answers
	// Live gives text sooner than the store has it; nil: streams wait for the store.
	Live chat.Live
	// Heartbeat is how long a stream is silent; 0 is 15 seconds.
	Heartbeat time.Duration
	// Patience is how long a client may take to read what was sent; 0 is 30
	// seconds.
	Patience time.Duration
}

// Server answers the routes above, until it is ended.
type Server struct {
	Options
	turns *chat.Turns
	mux   *http.ServeMux

	ctx context.Context // ends what is under way
	end context.CancelFunc
}

// New returns a server.
func New(o Options) *Server {
	if o.Tenant == "" {
		o.Tenant = journal.DefaultTenant
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	s := &Server{
		Options: o,
		turns:   &chat.Turns{Source: chat.Source{Store: o.Store, Live: o.Live}, Engine: o.Engine, IDs: o.IDs, Tenant: o.Tenant},
		mux:     http.NewServeMux(),
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	allowed := map[string][]string{}
	for _, r := range s.routes() {
		s.mux.HandleFunc(r.method+" "+r.path, reporting(allowing(r.act, r.handle)))
		allowed[r.path] = append(allowed[r.path], r.method)
	}
	for path, methods := range allowed {
		s.mux.HandleFunc(path, reporting(refuseMethod(methods)))
	}
	s.mux.HandleFunc("/", reporting(func(_ http.ResponseWriter, r *http.Request) error {
		return failf(NotFound, "there is no %s here", r.URL.Path)
	}))
	return s
}

// Prefixes are what the paths begin with, for who joins the server with others.
func (s *Server) Prefixes() []string { return []string{"/chat/", "/v1/"} }

// Paths are the routes, each as `METHOD /path`.
func (s *Server) Paths() (paths []string) {
	for _, r := range s.routes() {
		paths = append(paths, r.method+" "+r.path)
	}
	return paths
}

// End cuts off what is under way, so that a server that shuts down need not wait
// for streams that have no end of their own. Runs go on.
func (s *Server) End() { s.end() }

// A handler answers a request, or says why it did not.
type handler func(http.ResponseWriter, *http.Request) error

type route struct {
	act          auth.Act
	method, path string
	handle       handler
}

func (s *Server) routes() []route {
	return []route{
		{auth.Operate, "POST", "/chat/stream", s.chat},
		{auth.Read, "GET", "/v1/budgets", s.listBudgets},
		{auth.Read, "GET", "/v1/playbooks", s.listPlaybooks},
		{auth.Read, "GET", "/v1/playbooks/{run}", s.showPlaybook},
		{auth.Read, "GET", "/v1/runs", s.listRuns},
		{auth.Read, "GET", "/v1/runs/{run}", s.showRun},
		{auth.Read, "GET", "/v1/runs/{run}/events", s.events},
		{auth.Operate, "POST", "/v1/runs/{run}/cancel", s.cancel},
		{auth.Operate, "POST", "/v1/runs/{run}/resolve", s.resolve},
		{auth.Read, "GET", "/v1/approvals", s.listApprovals},
		{auth.Read, "GET", "/v1/approvals/{id}", s.showApproval},
		{auth.Decide, "POST", "/v1/approvals/{id}/approve", s.decide(journal.QuestionApproved)},
		{auth.Decide, "POST", "/v1/approvals/{id}/deny", s.decide(journal.QuestionDenied)},
		{auth.Decide, "POST", "/v1/approvals/{id}/answer", s.decide(journal.QuestionAnswered)},
		{auth.CallModels, "GET", "/v1/approvals/{id}/answer", s.giveAnswer},
		{auth.Decide, "GET", "/v1/approvals/{id}/withheld", s.showWithheld},
	}
}

var crossOrigin = http.NewCrossOriginProtection()

// ServeHTTP answers those who may do all of it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r, false) }

// serve answers a request. One whose sender showed a key that was required may
// come under any name.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, anyHost bool) {
	if !anyHost && !local(r.Host) {
		writeError(w, failf(Forbidden, "host %.100q is not a name of this machine", r.Host))
		return
	}
	if err := crossOrigin.Check(r); err != nil {
		writeError(w, failf(Forbidden, "%v", err))
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(s.ctx, stop)()
	s.mux.ServeHTTP(w, r.WithContext(ctx))
}

// local reports whether a Host header names this machine. A page of another site
// that has its name point here comes under that name.
func local(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.IsLoopback()
	}
	name = strings.ToLower(name)
	return name == "localhost" || name == SocketHost
}

// SocketHost is the host under which requests come over the socket.
const SocketHost = "stoplog.invalid"

func refuseMethod(allowed []string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		list := strings.Join(allowed, ", ")
		w.Header().Set("Allow", list)
		return failf(BadMethod, "%s takes %s", r.URL.Path, list)
	}
}
