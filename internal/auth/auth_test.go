package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// memory is a store that forgets, and may fail.
type memory struct {
	keys  []Key
	reads int
	err   error
}

func (m *memory) AuthKeys(context.Context) ([]Key, error) {
	m.reads++
	return slices.Clone(m.keys), m.err
}

func (m *memory) AddAuthKey(_ context.Context, k Key) error {
	m.keys = append(m.keys, k)
	return m.err
}

func (m *memory) RevokeAuthKey(_ context.Context, id string, at time.Time, by string) (bool, error) {
	for i := range m.keys {
		if m.keys[i].ID == id && m.keys[i].Revoked.IsZero() {
			m.keys[i].Revoked, m.keys[i].RevokedBy = at, by
			return true, nil
		}
	}
	return false, nil
}

func digest(b []byte) (d [32]byte) {
	h := hmac.New(sha256.New, []byte("store"))
	h.Write(b)
	return [32]byte(h.Sum(nil))
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func create(t *testing.T, s Store, k Key) (Key, string) {
	t.Helper()
	made, token, err := Create(t.Context(), s, digest, noon, k)
	if err != nil {
		t.Fatal(err)
	}
	return made, token
}

// TestCreate: a token of its own each time, which what is kept does not hold.
func TestCreate(t *testing.T) {
	s := &memory{}
	_, first := create(t, s, Key{Name: "ci", Role: App, Labels: Labels{Team: "a"}})
	_, second := create(t, s, Key{Name: "ann", Role: Admin})
	if first == second || !tokenForm.MatchString(first) || !Is(first) {
		t.Errorf("tokens %q and %q", first, second)
	}
	if kept := fmt.Sprintf("%+v", s.keys); strings.Contains(kept, first[12:]) {
		t.Errorf("what is kept holds the secret: %s", kept)
	}
	for name, k := range map[string]Key{
		"no name":     {Role: App},
		"a control":   {Name: "a\nb", Role: App},
		"a long name": {Name: strings.Repeat("a", 65), Role: App},
		"a label":     {Name: "a", Role: App, Labels: Labels{User: "\x1b[31m"}},
		"no role":     {Name: "a"},
		"a role":      {Name: "a", Role: "root"},
		"a limit":     {Name: "a", Role: App, Limits: Limits{TokensPerMinute: -1}},
		"the past":    {Name: "a", Role: App, Expires: noon},
	} {
		if _, token, err := Create(t.Context(), s, digest, noon, k); err == nil || token != "" {
			t.Errorf("%s: made %q", name, token)
		}
	}
	if len(s.keys) != 2 {
		t.Errorf("%d keys are kept, want 2", len(s.keys))
	}
}

// TestIdentify says who is who, and what is left of a request's header.
func TestIdentify(t *testing.T) {
	s := &memory{}
	app, token := create(t, s, Key{Name: "app", Role: App})
	_, other := create(t, s, Key{Name: "other", Role: App})
	gone, revoked := create(t, s, Key{Name: "gone", Role: App})
	if _, err := s.RevokeAuthKey(t.Context(), gone.ID, noon, "ann"); err != nil {
		t.Fatal(err)
	}
	_, expired := create(t, s, Key{Name: "old", Role: App, Expires: noon.Add(time.Hour)})
	forged := token[:len(token)-1] + "0"
	if forged == token {
		forged = token[:len(token)-1] + "1"
	}
	swapped := other[:12] + token[12:]

	h := func(pairs ...string) http.Header {
		header := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			header.Add(pairs[i], pairs[i+1])
		}
		return header
	}
	for name, c := range map[string]struct {
		header, left http.Header
		required     bool
		want         string // a key's id
		err          error
	}{
		"bearer":                    {header: h("Authorization", "Bearer "+token), left: h(), want: app.ID},
		"bearer, in other letters":  {header: h("Authorization", "bEARER  "+token), left: h(), want: app.ID},
		"x-api-key":                 {header: h("x-api-key", token, "X-Other", "stays"), left: h("X-Other", "stays"), want: app.ID},
		"api-key":                   {header: h("api-key", token), left: h(), want: app.ID},
		"beside a provider's":       {header: h("Authorization", "Bearer sk-theirs", "Stoplog-Key", token), left: h("Authorization", "Bearer sk-theirs"), want: app.ID, required: true},
		"the same twice":            {header: h("Authorization", "Bearer "+token, "Stoplog-Key", token), left: h(), want: app.ID},
		"two":                       {header: h("Authorization", "Bearer "+token, "Stoplog-Key", other), left: h("Authorization", "Bearer "+token, "Stoplog-Key", other), err: ErrTwo},
		"none":                      {header: h("Authorization", "Bearer sk-theirs"), left: h("Authorization", "Bearer sk-theirs")},
		"none, and one is required": {header: h("Authorization", "Bearer sk-theirs"), left: h("Authorization", "Bearer sk-theirs"), required: true, err: ErrNoKey},
		"forged":                    {header: h("x-api-key", forged), left: h(), err: ErrUnknown},
		"of another id":             {header: h("x-api-key", swapped), left: h(), err: ErrUnknown},
		"cut":                       {header: h("x-api-key", token[:20]), left: h(), err: ErrUnknown},
		"no key of ours":            {header: h("Stoplog-Key", "sk-theirs"), left: h(), err: ErrUnknown},
		"an id that is not there":   {header: h("x-api-key", "sl_00000000_"+token[12:]), left: h(), err: ErrUnknown},
		"revoked":                   {header: h("x-api-key", revoked), left: h(), err: ErrEnded},
		"expired":                   {header: h("x-api-key", expired), left: h(), err: ErrEnded},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Ring{Store: s, Digest: digest, Now: func() time.Time { return noon.Add(2 * time.Hour) }, Required: c.required}
			got, err := r.Identify(t.Context(), c.header)
			if got.Key.ID != c.want || !errors.Is(err, c.err) {
				t.Errorf("got key %q, error %v; want %q, %v", got.Key.ID, err, c.want, c.err)
			}
			if diff := cmp.Diff(c.left, c.header); diff != "" {
				t.Errorf("what is left of the header:\n%s", diff)
			}
			if err != nil && strings.Contains(err.Error(), token[12:]) {
				t.Errorf("the error holds the key: %v", err)
			}
		})
	}
}

// TestFresh: what is known is read again after a while, and not before, and where
// it cannot be nobody is let in.
func TestFresh(t *testing.T) {
	s, now := &memory{}, noon
	k, token := create(t, s, Key{Name: "app", Role: App})
	r := &Ring{Store: s, Digest: digest, Now: func() time.Time { return now }}
	identify := func() error {
		_, err := r.Identify(t.Context(), http.Header{"X-Api-Key": {token}})
		return err
	}
	for range 3 {
		if err := identify(); err != nil {
			t.Fatal(err)
		}
	}
	if s.reads != 1 {
		t.Errorf("the store was read %d times, want once", s.reads)
	}
	if _, err := s.RevokeAuthKey(t.Context(), k.ID, now, "ann"); err != nil {
		t.Fatal(err)
	}
	if now = now.Add(Fresh); !errors.Is(identify(), ErrEnded) {
		t.Error("a revoked key is still taken")
	}
	now, s.err = now.Add(Fresh), errors.New("no disk")
	if err := identify(); !errors.Is(err, s.err) {
		t.Errorf("got the error %v, want that the store cannot be read", err)
	}
}

// TestRoles pins what each role allows.
func TestRoles(t *testing.T) {
	names := map[Act]string{CallModels: "call models", Read: "read", Decide: "decide", Operate: "operate", Administer: "administer"}
	got := map[Role][]string{}
	for _, r := range Roles {
		for _, a := range []Act{CallModels, Read, Decide, Operate, Administer} {
			if r.May(a) {
				got[r] = append(got[r], names[a])
			}
		}
		if r.May(0) || r.May(1<<7) {
			t.Errorf("%s may do what is nothing", r)
		}
	}
	want := map[Role][]string{
		App:      {"call models"},
		Viewer:   {"read"},
		Approver: {"read", "decide"},
		Operator: {"call models", "read", "operate"},
		Admin:    {"call models", "read", "decide", "operate", "administer"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if (Caller{Key: Key{ID: "x", Role: "nobody"}}).May(Read) {
		t.Error("a role that is none may read")
	}
}

func TestFind(t *testing.T) {
	keys := []Key{
		{ID: "aaaa1111", Name: "ci", Revoked: noon}, {ID: "aaaa2222", Name: "ci"},
		{ID: "bbbb1111", Name: "one"}, {ID: "bbbb2222", Name: "two"},
	}
	for said, want := range map[string]string{
		"ci": "aaaa2222", "sl_aaaa1": "aaaa1111", "aaaa1": "aaaa1111", "bbbb1": "bbbb1111", "one": "bbbb1111",
		"bbbb": "", "": "", "cccc": "", "sl_aaaa1111_0123456789": "aaaa1111", "sl_cccc1111_0123456789": "",
	} {
		got, err := Find(keys, noon, said)
		if got.ID != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", said, got.ID, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "0123456789") {
			t.Errorf("the error holds a token: %v", err)
		}
	}
}

func BenchmarkIdentify(b *testing.B) {
	s := &memory{}
	_, token, err := Create(b.Context(), s, digest, noon, Key{Name: "app", Role: App})
	if err != nil {
		b.Fatal(err)
	}
	r := &Ring{Store: s, Digest: digest, Now: func() time.Time { return noon }}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Identify(b.Context(), http.Header{"Authorization": {"Bearer " + token}}); err != nil {
			b.Fatal(err)
		}
	}
}
