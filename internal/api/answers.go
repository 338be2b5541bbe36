package api

import (
	"context"
	"net/http"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/journal"
)

// Answers gives out answers of requests that were withheld.
type Answers interface {
	// Answer returns the answer of an approval, once it is approved, to the caller
	// who asked for it: by the id of their key, or what their header shows. A Refusal
	// says why there is none.
	Answer(ctx context.Context, id journal.ID, key string, header http.Header) (Released, *Refusal, error)
}

// Released is an answer as its caller gets it.
type Released struct {
	Status int
	Kind   string // content type
	Body   []byte
}

// Refusal says why an answer is not given out.
type Refusal struct {
	Status  int // HTTP
	Code    Code
	Message string
}

// giveAnswer answers GET /v1/approvals/{id}/answer, byte for byte.
func (s *Server) giveAnswer(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	if s.Answers == nil {
		return failf(NotFound, "no answers are kept here")
	}
	// Not by the beginning of an id: who may not have it is not told whether it is there.
	released, no, err := s.Answers.Answer(r.Context(), journal.ID(r.PathValue("id")), callerOf(r).Key.ID, r.Header)
	switch {
	case err != nil:
		return err
	case no != nil:
		writeRefusal(w, no)
		return nil
	}
	release(w, released)
	return nil
}

// showWithheld answers GET /v1/approvals/{id}/withheld: what a person decides on.
func (s *Server) showWithheld(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	q, err := s.question(r)
	if err != nil {
		return err
	}
	a, err := approval.Asked(r.Context(), s.Store, q)
	if err != nil {
		return err
	}
	release(w, Released{Status: http.StatusOK, Kind: "text/plain; charset=utf-8", Body: a.Body})
	return nil
}

// release writes an answer that no cache keeps and no browser takes for a page.
func release(w http.ResponseWriter, a Released) {
	w.Header().Set("Content-Type", a.Kind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(a.Status)
	w.Write(a.Body)
}

func writeRefusal(w http.ResponseWriter, no *Refusal) {
	writeJSON(w, no.Status, map[string]*Error{"error": {Code: no.Code, Message: no.Message}})
}
