package gateway_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
)

// TestNotRecorded: what cannot be recorded does not show. A stream is cut, so
// that nothing looks like its end; anything else is answered in the protocol.
func TestNotRecorded(t *testing.T) {
	w := open(t, guard.Redact, func(c *govern.Config) {
		c.Record = func(rs ...govern.Record) error {
			if _, ok := rs[0].Fact.(govern.Verdict); ok {
				return errors.New("the disk is full")
			}
			return nil
		}
	})
	for _, p := range protocols {
		w.answers(p, "so: ", secret, " it is")
		a := w.ask("POST", path(p), question(p, true))
		if !errors.Is(a.err, io.ErrUnexpectedEOF) || bytes.Contains(a.body, []byte("redacted")) || bytes.Contains(a.body, []byte(" it is")) {
			t.Errorf("%s, streamed: %q, %v", p, a.body, a.err)
		}
		a = w.ask("POST", path(p), question(p, false))
		inProtocol(t, p, a)
		if m := understand(t, p, a); a.status != 503 || m.Error != "the request was not served, since it could not be recorded" || !strings.HasPrefix(a.run(), "run_") {
			t.Errorf("%s, unstreamed: %d %+v %v", p, a.status, m, a.header)
		}
	}
}
