package gateway

import (
	"errors"
	"net/http"
	"slices"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/auth"
)

// errRole says that a key is not for this.
var errRole = errors.New("the key's role does not allow it to call models: that is what app, operator and admin are for")

// identify says who sent a request, and takes a key of ours out of it.
func (g *Gateway) identify(r *http.Request) (auth.Caller, error) {
	if g.Keys == nil {
		return auth.Caller{}, nil
	}
	caller, err := g.Keys.Identify(r.Context(), r.Header)
	if err == nil && !caller.May(auth.CallModels) {
		err = errRole
	}
	return caller, err
}

// refuseCaller answers one who may not ask. Why is said as far as it helps nobody
// to guess: where the keys cannot be read nobody is let in.
func refuseCaller(w http.ResponseWriter, protocol string, err error) {
	switch {
	case errors.Is(err, errRole):
		refuse(w, protocol, http.StatusForbidden, "role_not_allowed", err.Error())
	case errors.Is(err, auth.ErrNoKey), errors.Is(err, auth.ErrUnknown), errors.Is(err, auth.ErrEnded), errors.Is(err, auth.ErrTwo):
		refuse(w, protocol, http.StatusUnauthorized, "invalid_api_key", err.Error())
	default:
		refuse(w, protocol, http.StatusServiceUnavailable, "keys_unreadable", "the keys cannot be read, so that nobody is let in")
	}
}

// profilesOf are the mount's profiles that a caller may use, the one first that
// serves a caller who names none.
func profilesOf(c auth.Caller, m Mount) []string {
	if len(c.Key.Profiles) == 0 {
		return m.Profiles
	}
	return slices.DeleteFunc(slices.Clone(c.Key.Profiles), func(name string) bool { return !slices.Contains(m.Profiles, name) })
}

// callerOf is a caller as the door records it.
func callerOf(c auth.Caller) govern.Caller {
	return govern.Caller{Key: c.Key.ID, Name: c.Key.Name, Team: c.Key.Labels.Team, App: c.Key.Labels.App, User: c.Key.Labels.User,
		RequestsPerMinute: c.Key.Limits.RequestsPerMinute, TokensPerMinute: c.Key.Limits.TokensPerMinute}
}
