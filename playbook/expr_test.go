package playbook

import (
	"strings"
	"testing"
)

// An expression is bounded in length and depth: what takes long to check is
// refused before it is.
func TestExpressionsAreBounded(t *testing.T) {
	l := newLanguage(nil)
	nested := func(n int) string { return strings.Repeat("[1].map(x, ", n) + "x" + strings.Repeat(")", n) }
	for _, text := range []string{
		nested(40), strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300), strings.Repeat("1 + ", 2000) + "1", `"` + strings.Repeat("x", 5000) + `"`,
	} {
		if e := l.read(text); len(e.issues) == 0 {
			t.Errorf("%.40s… passes", text)
		}
	}
	for _, text := range []string{nested(5), strings.Repeat("true || ", 200) + "false", strings.Repeat(`"a" + `, 20) + `"b"`} {
		if e := l.read(text); len(e.issues) > 0 {
			t.Errorf("%.40s…: %s", text, e.issues[0].message)
		}
	}
}
