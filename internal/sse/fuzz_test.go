package sse

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzScanner compares the scanner, fed in pieces of the sizes that cuts
// gives, with the reference, and checks that what it mended stays mended.
func FuzzScanner(f *testing.F) {
	for _, ex := range examples {
		f.Add([]byte(ex.stream), []byte{1, 2, 3})
	}
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		var pieces []string
		rest := stream
		for _, n := range cuts {
			n := min(int(n), len(rest))
			pieces = append(pieces, string(rest[:n]))
			rest = rest[n:]
		}
		pieces = append(pieces, string(rest))

		got := scan(pieces...)
		if diff := cmp.Diff(reference(string(stream)), got); diff != "" {
			t.Fatalf("frames of %q in %q (-reference +got):\n%s", stream, pieces, diff)
		}
		var mended []byte
		clean := true
		for _, f := range got {
			mended = append(mended, f.Raw...)
			clean = clean && !f.Mended && !bytes.HasPrefix(f.Raw, []byte(byteOrderMark))
		}
		if !clean {
			return
		}
		again := scan(string(mended))
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("clean frames of %q read again (-first +second):\n%s", stream, diff)
		}
	})
}
