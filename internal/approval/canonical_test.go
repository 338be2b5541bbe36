package approval

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The canonical form is JSON, a fixed point, and means what was given, to the
// last digit.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`1.0`, `-0`, `[1E2,{"b":1e-7,"a":123456789012345678901}]`, `"1.0 \" 2.0"`, `{"a":0.1000000000000000055}`, `1e-400`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		form, err := canonical(json.RawMessage(src))
		if err != nil {
			return
		}
		again, err := canonical(json.RawMessage(form))
		if err != nil || string(again) != string(form) {
			t.Fatalf("%s becomes %s, and that %s, %v", src, form, again, err)
		}
		var a, b any
		if err := json.Unmarshal(src, &a); err != nil {
			return // a number that no double holds
		}
		if err := json.Unmarshal(form, &b); err != nil || !cmp.Equal(a, b) {
			t.Errorf("%s becomes %s, %v", src, form, err)
		}
	})
}
