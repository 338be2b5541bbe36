package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Fresh is how old what a [Ring] knows may be: for so long a key that was revoked
// elsewhere is still taken.
const Fresh = 2 * time.Second

// Ring is the keys of a store, at hand: a request that shows one waits for no
// disk unless what is known is older than [Fresh]. It is safe for use by several
// goroutines. Its members are not changed once it is in use.
type Ring struct {
	Store  Store
	Digest Digester
	Now    func() time.Time // nil: time.Now
	// Required refuses callers who show no key.
	Required bool

	mu   sync.Mutex
	read time.Time
	keys map[string]Key
}

// A Caller is who sent a request.
type Caller struct {
	// Key is zero for one who showed none, where none is required.
	Key Key
}

// Known reports whether the caller showed a key.
func (c Caller) Known() bool { return c.Key.ID != "" }

// May reports whether the caller may do something. One who showed no key, where
// none is required, is on this machine, and may.
func (c Caller) May(a Act) bool { return !c.Known() || c.Key.Role.May(a) }

// Why a caller is refused. Each is told to the caller as it is: it says nothing
// that helps to guess.
var (
	ErrNoKey   = errors.New("a key is required: send one as Authorization: Bearer sl_…, as x-api-key or as Stoplog-Key (stoplog keys create makes one)")
	ErrUnknown = errors.New("the key is not known")
	ErrEnded   = errors.New("the key was revoked or has expired")
	ErrTwo     = errors.New("the request shows two different keys of Stoplog's: send one")
)

// headers are where a key may be. The last is for callers who send a provider's
// own key in the others.
var headers = []string{"Authorization", "X-Api-Key", "Api-Key", "Stoplog-Key"}

// Identify says who sent a request, and takes the key out of its header: what is
// shown to us is shown to nobody else. Its error is one of the above, or says that
// the store could not be read.
func (r *Ring) Identify(ctx context.Context, h http.Header) (Caller, error) {
	token := ""
	for _, name := range headers {
		for _, value := range h.Values(name) {
			if name == "Authorization" {
				value = bearer(value)
			}
			value = strings.TrimSpace(value)
			if !Is(value) && name != "Stoplog-Key" {
				continue
			}
			if token != "" && token != value {
				return Caller{}, ErrTwo
			}
			token = value
		}
	}
	for _, name := range headers {
		strip(h, name)
	}
	if token == "" {
		if r.Required {
			return Caller{}, ErrNoKey
		}
		return Caller{}, nil
	}
	return r.caller(ctx, token)
}

// caller finds the key of a token.
func (r *Ring) caller(ctx context.Context, token string) (Caller, error) {
	now := r.now()
	keys, err := r.known(ctx, now)
	if err != nil {
		return Caller{}, err
	}
	id := ""
	if m := tokenForm.FindStringSubmatch(token); m != nil {
		id = m[1]
	}
	k := keys[id] // of an id that is not there: a digest that no token has
	if digest := r.Digest([]byte(token)); !same(digest, k.Digest) || id == "" || k.ID == "" {
		return Caller{}, ErrUnknown
	}
	if k.State(now) != "live" {
		return Caller{}, ErrEnded
	}
	return Caller{Key: k}, nil
}

// known gives the keys, read again if what was read is too old.
func (r *Ring) known(ctx context.Context, now time.Time) (map[string]Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := now.Sub(r.read); r.keys != nil && age >= 0 && age < Fresh {
		return r.keys, nil
	}
	all, err := r.Store.AuthKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	keys := make(map[string]Key, len(all))
	for _, k := range all {
		keys[k.ID] = k
	}
	r.read, r.keys = now, keys
	return keys, nil
}

func (r *Ring) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// bearer gives the token of an Authorization header, or nothing.
func bearer(value string) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(value), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return token
}

// strip takes our keys out of a header, and leaves others'.
func strip(h http.Header, name string) {
	values := h.Values(name)
	var kept []string
	for _, v := range values {
		own := v
		if name == "Authorization" {
			own = bearer(v)
		}
		if !Is(strings.TrimSpace(own)) && name != "Stoplog-Key" {
			kept = append(kept, v)
		}
	}
	if len(kept) == 0 {
		h.Del(name)
	} else if len(kept) < len(values) {
		h[http.CanonicalHeaderKey(name)] = kept
	}
}
