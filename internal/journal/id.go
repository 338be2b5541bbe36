package journal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// ID names a run, an approval, a session or a ticket: a prefix that says which,
// and a ULID in lower case. IDs of one kind sort by the time they were made.
type ID string

// A Prefix opens the ids of one kind of thing.
type Prefix string

const (
	RunPrefix      Prefix = "run_"
	ApprovalPrefix Prefix = "apr_"
	SessionPrefix  Prefix = "ses_"
	TicketPrefix   Prefix = "tkt_"
)

var prefixes = []Prefix{RunPrefix, ApprovalPrefix, SessionPrefix, TicketPrefix}

// Ref names a run of a tenant.
type Ref struct {
	Tenant string
	Run    ID
}

// DefaultTenant is the tenant of a store that serves one.
const DefaultTenant = "default"

func (r Ref) String() string { return r.Tenant + "/" + string(r.Run) }

// IDs makes ids. It is safe for use by several goroutines.
type IDs struct {
	now func() time.Time

	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
}

// NewIDs returns a maker of ids that takes their time from now and their
// randomness from entropy, such as crypto/rand.Reader.
func NewIDs(now func() time.Time, entropy io.Reader) *IDs {
	return &IDs{now: now, entropy: ulid.Monotonic(entropy, 0)}
}

// New returns a new id, which sorts after those that this maker made before it
// in the same millisecond. It fails if the source of randomness does.
func (m *IDs) New(p Prefix) (ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u, err := ulid.New(ulid.Timestamp(m.now()), m.entropy)
	if err != nil {
		return "", fmt.Errorf("make an id %s…: %w", p, err)
	}
	return ID(string(p) + strings.ToLower(u.String())), nil
}

// Prefix returns the prefix of the id; empty if it has none that is known.
func (id ID) Prefix() Prefix {
	for _, p := range prefixes {
		if strings.HasPrefix(string(id), string(p)) {
			return p
		}
	}
	return ""
}

// Time returns when the id was made, to the millisecond; the zero time if it is
// not an id.
func (id ID) Time() time.Time {
	u, err := ulid.ParseStrict(strings.ToUpper(strings.TrimPrefix(string(id), string(id.Prefix()))))
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(u.Time()).UTC()
}

// Partial reads what a person typed for an id of kind p: a leading part of it,
// in any case, with the prefix or without. The answer opens every id that is
// meant. It refuses what cannot open one.
func Partial(p Prefix, typed string) (string, error) {
	low := strings.ToLower(strings.TrimSpace(typed))
	for _, other := range prefixes {
		if other != p && strings.HasPrefix(low, string(other)) {
			return "", fmt.Errorf("%q is not an id %s…", typed, p)
		}
	}
	rest := strings.TrimPrefix(low, string(p))
	if len(rest) > ulid.EncodedSize || strings.ContainsFunc(rest, notCrockford) {
		return "", fmt.Errorf("%q is not an id %s…, nor the beginning of one", typed, p)
	}
	if rest == "" {
		return "", fmt.Errorf("%q is too short for an id %s…", typed, p)
	}
	return string(p) + rest, nil
}

// notCrockford reports whether r is outside the alphabet of ULIDs.
func notCrockford(r rune) bool {
	return !strings.ContainsRune(strings.ToLower(ulid.Encoding), r)
}
