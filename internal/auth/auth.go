// Package auth tells callers apart by keys.
//
//	stoplog keys create ─► sl_ID_SECRET ─► shown once
//	                              │
//	                        digest ─► the store
//
//	a request's sl_… ─► Ring ─► Caller: a key's id, its role, its labels
//
// # Laws
//
// A key's secret is 256 random bits, and nothing that is kept gives it back: the
// store has a keyed digest, and a request's is compared with it in constant time,
// for an id that is not there too.
//
// A key that is unknown, revoked or has expired is refused wherever it is shown,
// also where none is asked for: a caller who shows one means to be known. What is
// revoked is refused within [Fresh], in every process.
//
// A role allows what it lists and no more. Keys are never deleted: who had which,
// who made it and who revoked it stays to be read.
package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Role says what a key is for.
type Role string

// The roles. Each of Viewer's and what follows may read runs, approvals and
// budgets.
const (
	App      Role = "app"      // call models through the gateway, and nothing else
	Viewer   Role = "viewer"   // read
	Approver Role = "approver" // and decide what runs ask
	Operator Role = "operator" // and talk to agents, cancel and resolve runs, call models
	Admin    Role = "admin"    // all of it
)

// Roles are all of them.
var Roles = []Role{App, Viewer, Approver, Operator, Admin}

// Act is something that a role may allow.
type Act uint8

// The acts.
const (
	CallModels Act = 1 << iota
	Read
	Decide
	Operate
	Administer
)

var allowed = map[Role]Act{
	App:      CallModels,
	Viewer:   Read,
	Approver: Read | Decide,
	Operator: Read | Operate | CallModels,
	Admin:    CallModels | Read | Decide | Operate | Administer,
}

// May reports whether a role allows an act.
func (r Role) May(a Act) bool { return allowed[r]&a == a && a != 0 }

// ParseRole reads a role.
func ParseRole(s string) (Role, error) {
	if r := Role(s); slices.Contains(Roles, r) {
		return r, nil
	}
	return "", fmt.Errorf("%q is not a role: want app, viewer, approver, operator or admin", s)
}

// Labels say whose a key is. They stand on every debit that is made with it.
type Labels struct {
	Team string `json:"team,omitempty"`
	App  string `json:"app,omitempty"`
	User string `json:"user,omitempty"`
}

// Limits are how much a key may ask for. 0 is no limit.
type Limits struct {
	RequestsPerMinute int64 `json:"requests_per_minute,omitempty"`
	TokensPerMinute   int64 `json:"tokens_per_minute,omitempty"`
}

// Key is a key as it is kept: without its secret.
type Key struct {
	ID       string // what stands between sl_ and the secret
	Name     string // for people: who decides under it is recorded as Name
	Role     Role
	Labels   Labels
	Limits   Limits
	Profiles []string // those that it may use, the first where it names none; none: any
	Digest   [32]byte // of the whole token, under the store's key

	Created   time.Time
	CreatedBy string
	Expires   time.Time // zero: never
	Revoked   time.Time // zero: it is not
	RevokedBy string
}

// State says how a key stands.
func (k Key) State(now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return "expired"
	}
	return "live"
}

// Store keeps keys.
type Store interface {
	// AuthKeys lists all that there ever were, the newest last.
	AuthKeys(ctx context.Context) ([]Key, error)
	// AddAuthKey keeps a new one; it fails if one of its name is live.
	AddAuthKey(ctx context.Context, k Key) error
	// RevokeAuthKey marks one as revoked, and reports whether it was not before.
	RevokeAuthKey(ctx context.Context, id string, at time.Time, by string) (bool, error)
}

// ErrName says that a live key has that name already.
var ErrName = errors.New("a live key has this name")

const (
	prefix   = "sl_"
	idSize   = 5  // bytes
	idLen    = 8  // the same in characters
	keySize  = 32 // bytes, 52 characters
	nameMost = 64
)

var (
	encoding  = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)
	tokenForm = regexp.MustCompile(`^sl_([0-9a-z]{8})_[0-9a-z]{52}$`)
	nameForm  = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{N} @._-]*$`)
)

// Is reports whether a text is meant as a key of ours.
func Is(token string) bool { return strings.HasPrefix(token, prefix) }

// Digester makes a keyed digest: the store's.
type Digester func([]byte) [32]byte

// Create makes a key of what k says (Name, Role, Labels, Limits, Profiles,
// Expires, CreatedBy), keeps it and returns it with its token, which nothing can
// give again.
func Create(ctx context.Context, s Store, digest Digester, now time.Time, k Key) (Key, string, error) {
	if err := k.Check(now); err != nil {
		return Key{}, "", err
	}
	secret := make([]byte, idSize+keySize)
	rand.Read(secret) // never fails
	k.ID = encoding.EncodeToString(secret[:idSize])
	token := prefix + k.ID + "_" + encoding.EncodeToString(secret[idSize:])
	k.Digest, k.Created = digest([]byte(token)), now.UTC()
	if err := s.AddAuthKey(ctx, k); err != nil {
		return Key{}, "", fmt.Errorf("create key %q: %w", k.Name, err)
	}
	return k, token, nil
}

// Check says what is wrong with a key that is to be made.
func (k Key) Check(now time.Time) error {
	if len(k.Name) > nameMost || !nameForm.MatchString(k.Name) {
		return fmt.Errorf("%q cannot name a key: want letters, digits, spaces and @ . _ -, at most %d bytes", k.Name, nameMost)
	}
	for what, label := range map[string]string{"team": k.Labels.Team, "app": k.Labels.App, "user": k.Labels.User} {
		if label != "" && (len(label) > nameMost || !nameForm.MatchString(label)) {
			return fmt.Errorf("%q cannot be a %s: want letters, digits, spaces and @ . _ -, at most %d bytes", label, what, nameMost)
		}
	}
	if _, err := ParseRole(string(k.Role)); err != nil {
		return err
	}
	if k.Limits.RequestsPerMinute < 0 || k.Limits.TokensPerMinute < 0 {
		return errors.New("a limit is a number of requests or tokens a minute, and not below zero")
	}
	if !k.Expires.IsZero() && !k.Expires.After(now) {
		return fmt.Errorf("the key would expire at %s, which has passed", k.Expires.UTC().Format(time.RFC3339))
	}
	return nil
}

// Find gives the one key that a name or the beginning of an id means, live ones
// before others. Of a whole token it takes the id, and repeats no more of it.
func Find(keys []Key, now time.Time, said string) (Key, error) {
	if Is(said) && len(said) > len(prefix)+idLen {
		said = said[:len(prefix)+idLen]
	}
	var found []Key
	for _, live := range []bool{true, false} {
		for _, k := range keys {
			if (k.State(now) == "live") == live && (k.Name == said || said != "" && strings.HasPrefix(k.ID, strings.TrimPrefix(said, prefix))) {
				found = append(found, k)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	switch len(found) {
	case 0:
		return Key{}, fmt.Errorf("there is no key %q", said)
	case 1:
		return found[0], nil
	}
	return Key{}, fmt.Errorf("%q means %d keys: name one by its id", said, len(found))
}

// same compares digests in constant time.
func same(a, b [32]byte) bool { return hmac.Equal(a[:], b[:]) }
