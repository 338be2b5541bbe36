package seal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	oldKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	newest = "f0e0d0c0b0a090807060504030201000ffeeddccbbaa99887766554433221100"
)

func ring(t *testing.T, keys ...string) *Ring {
	t.Helper()
	r, err := Parse([]byte(strings.Join(keys, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var place = Column{Tenant: "default", Name: "events.payload", Run: "run_1", Row: "7"}

// The vectors of the specification, c2sp.org/XAES-256-GCM.
func TestXAES(t *testing.T) {
	for _, c := range []struct{ key, nonce, plaintext, aad, want string }{
		{strings.Repeat("01", 32), "ABCDEFGHIJKLMNOPQRSTUVWX", "XAES-256-GCM", "",
			"ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{strings.Repeat("03", 32), "ABCDEFGHIJKLMNOPQRSTUVWX", "XAES-256-GCM", "c2sp.org/XAES-256-GCM",
			"986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		secret, err := hex.DecodeString(c.key)
		if err != nil {
			t.Fatal(err)
		}
		k, err := newKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		aead, err := k.derive([]byte(c.nonce[:12]))
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(aead.Seal(nil, []byte(c.nonce[12:]), []byte(c.plaintext), []byte(c.aad))); got != c.want {
			t.Errorf("key %s…: %s, want %s", c.key[:4], got, c.want)
		}
	}
}

// What is sealed opens at its own place, unchanged, and nowhere else.
func TestSealed(t *testing.T) {
	r := ring(t, oldKey)
	plain := []byte("a word that nobody may read")
	id, sealed, err := r.Seal(place, plain)
	if err != nil {
		t.Fatal(err)
	}
	if len(sealed) != len(plain)+Overhead || bytes.Contains(sealed, plain[:6]) {
		t.Errorf("sealed %d bytes into %x", len(plain), sealed)
	}
	if got, err := r.Open(place, id, sealed); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("opened %q, %v", got, err)
	}
	_, again, err := r.Seal(place, plain)
	if err != nil || bytes.Equal(again[:nonceSize], sealed[:nonceSize]) {
		t.Errorf("a nonce was used twice (%v)", err)
	}
	for i := range sealed {
		altered := bytes.Clone(sealed)
		altered[i] ^= 1
		if got, err := r.Open(place, id, altered); !errors.Is(err, ErrAltered) || got != nil {
			t.Fatalf("with byte %d changed: %q, %v, want ErrAltered", i, got, err)
		}
	}
	for cut := range len(sealed) {
		if _, err := r.Open(place, id, sealed[:cut]); !errors.Is(err, ErrAltered) {
			t.Fatalf("cut at %d: %v, want ErrAltered", cut, err)
		}
	}
	for _, other := range []Column{
		{"other", place.Name, place.Run, place.Row},
		{place.Tenant, "blobs.body", place.Run, place.Row},
		{place.Tenant, place.Name, "run_2", place.Row},
		{place.Tenant, place.Name, place.Run, "8"},
		{place.Tenant, place.Name, "run_", "17"}, // the same letters, cut elsewhere
	} {
		if _, err := r.Open(other, id, sealed); !errors.Is(err, ErrAltered) {
			t.Errorf("at %v: %v, want ErrAltered", other, err)
		}
	}
}

// A key that is added seals; the one before still opens what it has sealed; one
// that is taken away opens nothing.
func TestRotation(t *testing.T) {
	before := ring(t, oldKey)
	id, sealed, err := before.Seal(place, []byte("old"))
	if err != nil {
		t.Fatal(err)
	}
	both := ring(t, "# rotated", oldKey, "", newest)
	if got, err := both.Open(place, id, sealed); err != nil || string(got) != "old" {
		t.Errorf("after rotation: %q, %v", got, err)
	}
	after, _, err := both.Seal(place, []byte("new"))
	if err != nil || after == id || after != both.ID() || after != ring(t, newest).ID() {
		t.Errorf("sealed under %s (%v), want the newest, %s", after, err, ring(t, newest).ID())
	}
	if _, err := ring(t, newest).Open(place, id, sealed); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("without the old key: %v, want ErrUnknownKey", err)
	}
	var none *Ring
	if _, _, err := none.Seal(place, []byte("x")); !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), "stoplog seal-key") {
		t.Errorf("without a key: %v, want ErrNoKey and how to make one", err)
	}
	if _, err := none.Open(place, id, sealed); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("without a key: %v, want ErrUnknownKey", err)
	}
	// Under another key's id it does not open: the id is part of what is bound.
	if _, err := both.Open(place, both.ID(), sealed); !errors.Is(err, ErrAltered) {
		t.Errorf("under another id: %v, want ErrAltered", err)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "there is no key in it"},
		{"# only words\n", "there is no key in it"},
		{"\n" + oldKey[:62] + "\n", "line 2 is not a key"},
		{oldKey + "00\n", "line 1 is not a key"},
		{"sk-live-somebodys-own-words-which-are-no-key\n", "line 1 is not a key"},
		{strings.Repeat("00", 32) + "\n", "anybody can guess"},
		{oldKey + "\n" + strings.ToUpper(oldKey) + "\n", "line 2 is a key that stood before"},
	} {
		_, err := Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want …%s…", c.text, err, c.want)
		}
		for _, secret := range []string{oldKey[:16], "somebodys"} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the key: %v", err)
			}
		}
	}
}

// Nothing that prints a ring prints a key.
func TestKeysDoNotShow(t *testing.T) {
	r := ring(t, oldKey, newest)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		shown := fmt.Sprintf(format, r)
		if strings.Contains(shown, oldKey[:12]) || strings.Contains(shown, "0 1 2 3") || !strings.Contains(shown, r.ID()) {
			t.Errorf("%s shows %s", format, shown)
		}
	}
}

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "stoplog.seal")
	if _, err := ReadFile(name); err == nil || !strings.Contains(err.Error(), "seal-key --to "+name) {
		t.Errorf("a file that is not there: %v, want how to make it", err)
	}
	first, err := AddKey(name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v (%v), want 0600", info.Mode(), err)
	}
	second, err := AddKey(name)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadFile(name)
	if err != nil || read.ID() != second.ID() || len(read.IDs()) != 2 || read.IDs()[0] != first.ID() {
		t.Errorf("read %v (%v), want %s and then %s", read, err, first.ID(), second.ID())
	}
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	for _, read := range []func(string) (*Ring, error){ReadFile, AddKey} {
		if _, err := read(name); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a file that others may read: %v", err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	r, err := Parse([]byte(oldKey))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, "default")
	f.Add(make([]byte, Overhead), "default")
	f.Fuzz(func(t *testing.T, sealed []byte, tenant string) {
		if got, err := r.Open(Column{Tenant: tenant}, r.ID(), sealed); err == nil {
			t.Fatalf("opened %q, which nobody has sealed", got)
		}
	})
}
