package api

import (
	"net/http"
	"time"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// Run is a run as the interface shows it.
type Run struct {
	ID      journal.ID      `json:"id"`
	Kind    journal.RunKind `json:"kind"`
	Session journal.ID      `json:"session,omitempty"`
	Parent  journal.ID      `json:"parent,omitempty"`
	Profile string          `json:"profile"`
	Starter string          `json:"starter,omitempty"`
	Host    string          `json:"host,omitempty"`

	Status  journal.Status `json:"status"`
	Reason  string         `json:"reason,omitempty"`
	Created time.Time      `json:"created"`
	Ended   time.Time      `json:"ended,omitzero"`
	// Events is how many events its log has, and Head the last link of its chain.
	Events uint64 `json:"events"`
	Head   string `json:"head"`
	// Spend is what it took of models; of a run in a list it is left out.
	Spend *chat.Spend `json:"spend,omitempty"`
}

// RunOf shows a run's row.
func RunOf(r journal.Run) Run {
	return Run{
		ID: r.Run, Kind: r.Kind, Session: r.Session, Parent: r.Parent, Profile: r.Profile, Starter: r.Starter, Host: r.Host,
		Status: r.Status, Reason: r.Reason, Created: r.Created, Ended: r.Ended,
		Events: r.Tail.Seq, Head: r.Tail.Link.String(),
	}
}

// RunList is a page of runs. Next is what to ask for as `before` for the page
// behind it; empty on the last.
type RunList struct {
	Runs []Run      `json:"runs"`
	Next journal.ID `json:"next,omitempty"`
}

// listRuns answers GET /v1/runs.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "status", "kind", "session", "before", "limit")
	if err != nil {
		return err
	}
	limit, err := pageSize(q)
	if err != nil {
		return err
	}
	if st := journal.Status(q.Get("status")); st != "" && !st.Known() {
		return failf(BadRequest, "unknown status %.40q", st)
	}
	rows, err := s.Store.Runs(r.Context(), journal.RunQuery{
		Tenant: s.Tenant, Status: journal.Status(q.Get("status")), Kind: journal.RunKind(q.Get("kind")),
		Session: journal.ID(q.Get("session")), Before: journal.ID(q.Get("before")), Limit: limit,
	})
	if err != nil {
		return err
	}
	list := RunList{Runs: []Run{}}
	for _, row := range rows {
		if row.Kind == journal.AllowancesRun && q.Get("kind") == "" {
			continue // no piece of work
		}
		list.Runs = append(list.Runs, RunOf(row))
	}
	if len(rows) == limit {
		list.Next = rows[len(rows)-1].Run
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// find returns the run that the path names.
func (s *Server) find(r *http.Request) (journal.Ref, error) {
	if _, err := journal.Partial(journal.RunPrefix, r.PathValue("run")); err != nil {
		return journal.Ref{}, failf(BadRequest, "%v", err)
	}
	return chat.Find(r.Context(), s.Store, s.Tenant, r.PathValue("run"))
}

// showRun answers GET /v1/runs/{run}.
func (s *Server) showRun(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	ref, err := s.find(r)
	if err != nil {
		return err
	}
	return s.writeRun(w, r, ref)
}

func (s *Server) writeRun(w http.ResponseWriter, r *http.Request, ref journal.Ref) error {
	row, err := s.Store.Run(r.Context(), ref)
	if err != nil {
		return err
	}
	spend, err := chat.SpendOf(r.Context(), s.Store, ref)
	if err != nil {
		return err
	}
	shown := RunOf(row)
	shown.Spend = &spend
	writeJSON(w, http.StatusOK, shown)
	return nil
}

// events answers GET /v1/runs/{run}/events: the run's story behind the header
// Last-Event-ID, to its end.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	after, err := lastEvent(r)
	if err != nil {
		return err
	}
	ref, err := s.find(r)
	if err != nil {
		return err
	}
	row, err := s.Store.Run(r.Context(), ref)
	if err != nil {
		return err
	}
	if after.Seq > row.Tail.Seq {
		return failf(BadRequest, "header Last-Event-ID: run %s has %d events, and none is %s", ref.Run, row.Tail.Seq, after)
	}
	return s.stream(w, r, s.story(row, after))
}

// CancelRequest is the body of cancel.
type CancelRequest struct {
	By string `json:"by,omitempty"`
}

// cancel answers POST /v1/runs/{run}/cancel. The wish is durable when it answers;
// the run ends a moment later.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	var body CancelRequest
	if err := readBody(w, r, &body); err != nil {
		return err
	}
	ref, err := s.find(r)
	if err != nil {
		return err
	}
	if err := s.Engine.Cancel(r.Context(), ref, orLocal(by(r, body.By))); err != nil {
		return err
	}
	return s.writeRun(w, r, ref)
}

// ResolveRequest is the body of resolve. Step and call may be left out where one
// call is in doubt.
type ResolveRequest struct {
	Choice string `json:"choice"` // retry, done or abandon
	Step   int    `json:"step,omitempty"`
	Call   int    `json:"call,omitempty"`
	Text   string `json:"text,omitempty"` // of done: the call's result
	By     string `json:"by,omitempty"`
}

// resolve answers POST /v1/runs/{run}/resolve.
func (s *Server) resolve(w http.ResponseWriter, r *http.Request) error {
	var body ResolveRequest
	if err := readBody(w, r, &body); err != nil {
		return err
	}
	res := Resolution{Step: body.Step, Call: body.Call, Text: body.Text, By: orLocal(by(r, body.By))}
	switch {
	case res.Choice.UnmarshalText([]byte(body.Choice)) != nil:
		return failf(BadRequest, "member \"choice\" is %.40q: want retry, done or abandon", body.Choice)
	case res.Choice != run.TakeAsDone && body.Text != "":
		return failf(BadRequest, "member \"text\" is the result of a call that is done, and the choice is %s", body.Choice)
	case body.Step < 0 || body.Call < 0:
		return failf(BadRequest, "members \"step\" and \"call\" count from 1")
	}
	ref, err := s.find(r)
	if err != nil {
		return err
	}
	if err := s.Engine.Resolve(r.Context(), ref, res); err != nil {
		return err
	}
	return s.writeRun(w, r, ref)
}
