package guard_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	. "github.com/stoplog/stoplog/guard"
)

var redacting = NewChain(Options{},
	Member{Guard: lit{"a", "cat", "cat", Redact}}, Member{Guard: lit{"d", "wolf", "wolf", Deny}})

// TestRedactor writes in pieces, and looks at what has been passed on after each.
func TestRedactor(t *testing.T) {
	var out bytes.Buffer
	var said []string
	r := NewRedactor(&out, redacting)
	r.Record = func(ds []Decision) error {
		for _, d := range ds {
			said = append(said, d.Rule+" after "+out.String())
		}
		return nil
	}
	for _, step := range []struct{ piece, out string }{
		{"a c", "a "}, {"a", "a "}, {"t and", "a [redacted:cat] and"}, {" a ca", "a [redacted:cat] and a "},
	} {
		if n, err := io.WriteString(r, step.piece); n != len(step.piece) || err != nil || out.String() != step.out {
			t.Errorf("after %q: %q is out, want %q; %d, %v", step.piece, out.String(), step.out, n, err)
		}
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil || out.String() != "a [redacted:cat] and a ca" {
		t.Errorf("at the end %q is out, %v", out.String(), err)
	}
	if len(said) != 1 || said[0] != "cat after a " {
		t.Errorf("recorded %q", said)
	}
	if _, err := r.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("after its end: %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

// TestRedactorFails for good: where the text is stopped, where nothing can be
// written, and where nothing can be recorded, in which case nothing is.
func TestRedactorFails(t *testing.T) {
	var out bytes.Buffer
	unrecorded := NewRedactor(&out, redacting)
	unrecorded.Record = func([]Decision) error { return errors.New("no journal") }
	for _, c := range []struct {
		r         *Redactor
		out, want string
	}{
		{NewRedactor(&out, redacting), "[redacted:cat], a ", "the text was stopped at byte 7: deny by rule wolf of guard d"},
		{NewRedactor(full{}, redacting), "", "no room"},
		{unrecorded, "", "no journal"},
	} {
		out.Reset()
		_, err := io.WriteString(c.r, "cat, a wolf, a cat")
		_, again := io.WriteString(c.r, "cat")
		if err == nil || err.Error() != c.want || again != err || c.r.Close() != err || out.String() != c.out {
			t.Errorf("%v, then %v, and %q is out; want %q and %q", err, again, out.String(), c.want, c.out)
		}
	}
}

var errShort = errors.New("short destination")

// transform runs a transformer as package transform does, with little room.
func transform(t *Transformer, text string, piece, room int) (string, error) {
	var out []byte
	dst := make([]byte, room)
	for {
		n := min(piece, len(text))
		nDst, nSrc, err := t.Transform(dst, []byte(text[:n]), n == len(text))
		out, text = append(out, dst[:nDst]...), text[nSrc:]
		if err == nil && text == "" || err != nil && err != errShort {
			return string(out), err
		}
	}
}

// TestTransformer gives what a redactor gives, however little room there is, and
// again after Reset.
func TestTransformer(t *testing.T) {
	tr := NewTransformer(redacting, errShort)
	for _, text := range []string{"a cat and a ca", "", "ca", strings.Repeat("cat ", 50), "a cat, a wolf, a cat", "x"} {
		var want bytes.Buffer
		r := NewRedactor(&want, redacting)
		_, wrote := io.WriteString(r, text)
		ended := r.Close()
		for _, room := range []int{1, 3, 100} {
			for _, piece := range []int{1, 2, 7, 1000} {
				tr.Reset()
				got, err := transform(tr, text, piece, room)
				if got != want.String() || (err == nil) != (ended == nil) {
					t.Fatalf("%q by %d into %d: %q, %v; want %q, %v, %v", text, piece, room, got, err, want.String(), wrote, ended)
				}
			}
		}
	}
}
