package api

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/journal"
)

// Approval is a question to a person as the interface shows it. The digest is
// SHA-256 of Shown as it stands here, byte for byte; a decision names it.
type Approval struct {
	ID      journal.ID            `json:"id"`
	Run     journal.ID            `json:"run"`
	About   string                `json:"about"` // call, reply, request, answer or step
	What    string                `json:"what"`
	Digest  string                `json:"digest"`
	Shown   json.RawMessage       `json:"shown,omitempty"`
	Asked   time.Time             `json:"asked"`
	Expires time.Time             `json:"expires,omitzero"`
	State   journal.QuestionState `json:"state"`
	By      string                `json:"by,omitempty"`
	Text    string                `json:"text,omitempty"`
	Decided time.Time             `json:"decided,omitzero"`
	Used    time.Time             `json:"used,omitzero"`
}

// ApprovalOf shows a question's row.
func ApprovalOf(q journal.Question) Approval {
	return Approval{
		ID: q.ID, Run: q.Run, About: q.About, What: q.Subject, Digest: hex.EncodeToString(q.Digest[:]), Shown: q.Shown,
		Asked: q.Asked, Expires: q.Expires, State: q.State, By: q.By, Text: q.Text, Decided: q.Decided, Used: q.Used,
	}
}

// ApprovalList is a page of questions. Next is what to ask for as `before` for
// the page behind it; empty on the last.
type ApprovalList struct {
	Approvals []Approval `json:"approvals"`
	Next      journal.ID `json:"next,omitempty"`
}

var questionStates = []journal.QuestionState{
	journal.QuestionPending, journal.QuestionApproved, journal.QuestionDenied, journal.QuestionAnswered, journal.QuestionExpired,
}

// listApprovals answers GET /v1/approvals.
func (s *Server) listApprovals(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "state", "run", "before", "limit")
	if err != nil {
		return err
	}
	limit, err := pageSize(q)
	if err != nil {
		return err
	}
	state := journal.QuestionState(q.Get("state"))
	if state != "" && !known(state) {
		return failf(BadRequest, "unknown state %.40q: want one of %q", state, questionStates)
	}
	rows, err := s.Store.Questions(r.Context(), journal.QuestionQuery{
		Tenant: s.Tenant, State: state, Run: journal.ID(q.Get("run")), Before: journal.ID(q.Get("before")), Limit: limit,
	})
	if err != nil {
		return err
	}
	list := ApprovalList{Approvals: []Approval{}}
	for _, row := range rows {
		list.Approvals = append(list.Approvals, ApprovalOf(row))
	}
	if len(rows) == limit {
		list.Next = rows[len(rows)-1].ID
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func known(state journal.QuestionState) bool {
	for _, s := range questionStates {
		if s == state {
			return true
		}
	}
	return false
}

// question returns the row that the path names.
func (s *Server) question(r *http.Request) (journal.Question, error) {
	partial, err := journal.Partial(journal.ApprovalPrefix, r.PathValue("id"))
	if err != nil {
		return journal.Question{}, failf(BadRequest, "%v", err)
	}
	id, err := s.Store.Find(r.Context(), s.Tenant, partial)
	if err != nil {
		return journal.Question{}, fmt.Errorf("approval %s: %w", r.PathValue("id"), err)
	}
	return s.Store.Question(r.Context(), s.Tenant, id)
}

// showApproval answers GET /v1/approvals/{id}.
func (s *Server) showApproval(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	q, err := s.question(r)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, ApprovalOf(q))
	return nil
}

// Decision is the body of approve, deny and answer.
type Decision struct {
	Digest string `json:"digest"` // of what was shown
	By     string `json:"by"`
	// Text is the reason, which may be left out, or the answer.
	Text string `json:"text,omitempty"`
}

// decide answers POST /v1/approvals/{id}/approve, deny and answer with the
// question as decided.
func (s *Server) decide(state journal.QuestionState) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body Decision
		if err := readBody(w, r, &body); err != nil {
			return err
		}
		digest, err := hex.DecodeString(body.Digest)
		if err != nil || len(digest) != 32 {
			return failf(BadRequest, "member \"digest\" is not 64 hex digits: it is what was shown with the question")
		}
		q, err := s.question(r)
		if err != nil {
			return err
		}
		if wanted := q.About == "reply"; wanted != (state == journal.QuestionAnswered) {
			if wanted {
				return failf(BadRequest, "%s asks for words: answer it", q.ID)
			}
			return failf(BadRequest, "%s asks for a yes or a no, and not for words", q.ID)
		}
		decided, err := s.Engine.Decide(r.Context(), s.Tenant, approval.Decision{
			ID: q.ID, Digest: [32]byte(digest), State: state, By: by(r, body.By), Text: body.Text,
		})
		if err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, ApprovalOf(decided))
		return nil
	}
}
