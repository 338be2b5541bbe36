package sandbox

import "testing"

func TestCheck(t *testing.T) {
	r := Check(t.Context())
	t.Logf("%+v", r)
}
