package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
)

// Code says why a request was not carried out. Programs read it; the message is
// for people.
type Code string

const (
	BadRequest   Code = "bad_request"        // 400: the body, a parameter or an id does not check
	Unauthorized Code = "unauthorized"       // 401: no key, or none that is known
	Forbidden    Code = "forbidden"          // 403: from another site, of another role, or somebody else must decide
	NotFound     Code = "not_found"          // 404
	BadMethod    Code = "method_not_allowed" // 405
	Unspeakable  Code = "not_acceptable"     // 406: neither JSON nor an event stream is wanted
	Ambiguous    Code = "ambiguous_id"       // 409: several ids begin so
	Busy         Code = "session_busy"       // 409: the session's last turn has not ended
	Ended        Code = "run_ended"          // 409: it has, and what came later changed nothing
	Decided      Code = "already_decided"    // 409: somebody was first, or time has passed
	NotShown     Code = "not_what_was_asked" // 409: the digest is not the question's
	NotTaken     Code = "not_taken"          // 409: the run is not where this has a place
	Elsewhere    Code = "held_elsewhere"     // 409: another worker, or machine, has the run
	TooLarge     Code = "too_large"          // 413
	NotJSON      Code = "not_json"           // 415: the Content-Type is not application/json
	Internal     Code = "internal"           // 500
	StoreFull    Code = "store_full"         // 507: there is no room for the journal
)

var statuses = map[Code]int{
	BadRequest: 400, Unauthorized: 401, Forbidden: 403, NotFound: 404, BadMethod: 405, Unspeakable: 406,
	Ambiguous: 409, Busy: 409, Ended: 409, Decided: 409, NotShown: 409, NotTaken: 409, Elsewhere: 409,
	TooLarge: 413, NotJSON: 415, Internal: 500, StoreFull: 507,
}

// Error is why a request was not carried out.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

func failf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// causes are the errors that callers can do something about.
var causes = []struct {
	is   error
	code Code
}{
	{journal.ErrNotFound, NotFound},
	{journal.ErrFull, StoreFull},
	{chat.ErrAhead, BadRequest},
	{chat.ErrEmpty, BadRequest},
	{chat.ErrNotTurn, BadRequest},
	{chat.ErrProfile, BadRequest},
	{chat.ErrNoModel, BadRequest},
	{chat.ErrBusy, Busy},
	{approval.ErrNotShown, NotShown},
	{approval.ErrUnapprovable, NotTaken},
	{approval.ErrSecondPerson, Forbidden},
	{approval.ErrNoName, BadRequest},
}

// errorOf gives an error its code.
func errorOf(err error) *Error {
	var (
		own       *Error
		ambiguous *journal.AmbiguousError
		settled   *journal.SettledError
		decided   *journal.DecidedError
		rejected  *run.Rejection
		leased    *journal.LeasedError
		placed    *journal.PlacedError
	)
	code := Internal
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &ambiguous):
		code = Ambiguous
	case errors.As(err, &settled):
		code = Ended
	case errors.As(err, &decided):
		code = Decided
	case errors.As(err, &rejected):
		code = NotTaken
	case errors.As(err, &leased), errors.As(err, &placed):
		code = Elsewhere
	}
	for _, c := range causes {
		if errors.Is(err, c.is) {
			code = c.code
		}
	}
	return &Error{Code: code, Message: err.Error()}
}

// reporting turns what a handler could not do into an answer.
func reporting(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		switch {
		case err == nil:
		case errors.Is(err, errBroken) || r.Context().Err() != nil:
			panic(http.ErrAbortHandler) // it has begun, or nobody is there: only the cut can be seen
		default:
			writeError(w, errorOf(err))
		}
	}
}

func writeError(w http.ResponseWriter, e *Error) {
	writeJSON(w, statuses[e.Code], struct {
		Error *Error `json:"error"`
	}{e})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a client that has left cannot be told
}
