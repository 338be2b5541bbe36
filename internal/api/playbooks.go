package api

import (
	"context"
	"iter"
	"net/http"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/flow"
	"github.com/stoplog/stoplog/internal/journal"
)

// Playbook is a run of a playbook, and where its steps stand.
type Playbook struct {
	Run
	Playbook string `json:"playbook"` // its name; empty if that was purged
	// Steps are in the order of the file; their member state is pending, running,
	// waiting, passed, skipped, blocked, cancelled, failed, failed_timeout,
	// failed_budget_exceeded or failed_schema.
	Steps []chat.Step `json:"steps"`
}

// PlaybookList is a page of runs of playbooks, the newest first.
type PlaybookList struct {
	Playbooks []Playbook `json:"playbooks"`
	Next      journal.ID `json:"next,omitempty"`
}

// playbookOf reads where a playbook's run stands. One that was purged has no steps to
// show.
func (s *Server) playbookOf(ctx context.Context, row journal.Run) (Playbook, error) {
	p := Playbook{Run: RunOf(row), Steps: []chat.Step{}}
	story := flow.NewStory(row)
	for rec, err := range s.Store.Events(ctx, row.Ref, 0) {
		if err != nil {
			return p, err
		}
		if _, err := story.Take(rec); err != nil {
			return p, err
		}
	}
	p.Playbook = story.State().Book.Name
	p.Steps = flow.Steps(story.State())
	return p, nil
}

// listPlaybooks answers GET /v1/playbooks.
func (s *Server) listPlaybooks(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "status", "before", "limit")
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
		Tenant: s.Tenant, Status: journal.Status(q.Get("status")), Kind: journal.PlaybookRun,
		Before: journal.ID(q.Get("before")), Limit: limit,
	})
	if err != nil {
		return err
	}
	list := PlaybookList{Playbooks: []Playbook{}}
	for _, row := range rows {
		p, err := s.playbookOf(r.Context(), row)
		if err != nil {
			return err
		}
		list.Playbooks = append(list.Playbooks, p)
	}
	if len(rows) == limit {
		list.Next = rows[len(rows)-1].Run
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// showPlaybook answers GET /v1/playbooks/{run}.
func (s *Server) showPlaybook(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
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
	if row.Kind != journal.PlaybookRun {
		return failf(NotFound, "run %s is a %s, and no playbook's", ref.Run, row.Kind)
	}
	p, err := s.playbookOf(r.Context(), row)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, p)
	return nil
}

// story is a run's, read behind a position and on: by the room that knows its kind.
func (s *Server) story(row journal.Run, after chat.Position) items {
	return func(ctx context.Context) iter.Seq2[chat.Item, error] {
		if row.Kind != journal.PlaybookRun {
			return s.turns.Follow(ctx, row.Ref, after)
		}
		return func(yield func(chat.Item, error) bool) {
			for item, err := range flow.Follow(ctx, s.Store, row.Ref, after) {
				if d, ok := item.Event.(chat.Done); ok && d.Waits() {
					continue // the run goes on behind it
				}
				if !yield(item, err) {
					return
				}
			}
		}
	}
}
