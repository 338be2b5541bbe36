package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/stoplog/stoplog/internal/auth"
)

type callerKey struct{}

// Behind is the server for callers who are told apart by keys. Nil keys take each
// as one on this machine, who may do all of it.
func (s *Server) Behind(keys *auth.Ring) http.Handler {
	if keys == nil {
		return s
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := keys.Identify(r.Context(), r.Header)
		switch {
		case errors.Is(err, auth.ErrNoKey), errors.Is(err, auth.ErrUnknown), errors.Is(err, auth.ErrEnded), errors.Is(err, auth.ErrTwo):
			w.Header().Set("WWW-Authenticate", `Bearer realm="stoplog"`)
			writeError(w, failf(Unauthorized, "%v", err))
			return
		case err != nil:
			writeError(w, failf(Internal, "the keys cannot be read, so that nobody is let in"))
			return
		}
		s.serve(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)), keys.Required)
	})
}

// callerOf is who sent a request; zero for one who may do all of it.
func callerOf(r *http.Request) auth.Caller {
	c, _ := r.Context().Value(callerKey{}).(auth.Caller)
	return c
}

// allowing lets those to a handler whose role allows the act.
func allowing(act auth.Act, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if c := callerOf(r); !c.May(act) {
			return failf(Forbidden, "key %q has the role %s, which does not allow this", c.Key.Name, c.Key.Role)
		}
		return h(w, r)
	}
}

// by is who acts: whose key it is, or else who they say they are.
func by(r *http.Request, claim string) string {
	if c := callerOf(r); c.Known() {
		return c.Key.Name
	}
	return claim
}
