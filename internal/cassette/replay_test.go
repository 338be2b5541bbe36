package cassette

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const paced = `{"cassette":1,"about":"pieces with their times","source":"written"}
{"request":{"method":"POST","path":"/v1"},"repeat":true}
{"response":{"status":200}}
{"ms":100,"data":"one"}
{"data":"two"}
{"ms":250,"data":"three"}
{"ms":1000,"end":true}
`

func open(t *testing.T, data string, pace Pace) *Cassette {
	t.Helper()
	c, err := Parse("test.cassette", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	c.Pace = pace
	return c
}

func answer(t *testing.T, c *Cassette, ctx context.Context) io.ReadCloser {
	t.Helper()
	resp, err := c.RoundTrip(request(t, http.MethodPost, "/v1", "").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Body
}

// TestPace reads the times at which the pieces come.
func TestPace(t *testing.T) {
	for pace, want := range map[Pace][]time.Duration{
		None: {0, 0, 0, 0},
		Real: {100 * time.Millisecond, 100 * time.Millisecond, 350 * time.Millisecond, 1350 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			body := answer(t, open(t, paced, pace), t.Context())
			start, buf := time.Now(), make([]byte, 64)
			for i, piece := range []string{"one", "two", "three", ""} {
				n, err := body.Read(buf)
				if string(buf[:n]) != piece || (err == io.EOF) != (piece == "") {
					t.Errorf("piece %d is %q, %v; want %q", i, buf[:n], err, piece)
				}
				if at := time.Since(start); at != want[i] {
					t.Errorf("pace %d: piece %d came at %v, want %v", pace, i, at, want[i])
				}
			}
		})
	}
}

// TestSmallReads: a piece larger than what it is read into is not lost.
func TestSmallReads(t *testing.T) {
	body := answer(t, open(t, paced, None), t.Context())
	var got strings.Builder
	buf := make([]byte, 2)
	for {
		n, err := body.Read(buf)
		got.Write(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got.String() != "onetwothree" {
		t.Errorf("got %q", got.String())
	}
	if n, err := body.Read(nil); n != 0 || err != nil && err != io.EOF {
		t.Errorf("a read into nothing gives %d, %v", n, err)
	}
}

// TestReadEnds: a read that waits for its piece ends with the context, or when
// the body is closed, at once.
func TestReadEnds(t *testing.T) {
	gone := errors.New("client gone")
	for name, end := range map[string]struct {
		by   func(cancel context.CancelCauseFunc, body io.Closer)
		want error
	}{
		"cancelled": {func(cancel context.CancelCauseFunc, _ io.Closer) { cancel(gone) }, context.Canceled},
		"closed":    {func(_ context.CancelCauseFunc, body io.Closer) { body.Close() }, errClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				body := answer(t, open(t, paced, Real), ctx)
				read := make(chan error)
				go func() {
					_, err := io.ReadAll(body)
					read <- err
				}()
				synctest.Wait() // until the read waits for the first piece's time
				start := time.Now()
				end.by(cancel, body)
				if err := <-read; !errors.Is(err, end.want) {
					t.Errorf("the read ends with %v, want %v", err, end.want)
				}
				if waited := time.Since(start); waited != 0 {
					t.Errorf("the read ended after %v more, want at once", waited)
				}
			})
		})
	}
}

// TestReadAfterTheEnd: what was closed or cancelled gives no more, whatever it has.
func TestReadAfterTheEnd(t *testing.T) {
	c := open(t, paced, None)
	ctx, cancel := context.WithCancel(t.Context())
	body := answer(t, c, ctx)
	cancel()
	if _, err := body.Read(make([]byte, 8)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the cancel: %v", err)
	}
	if _, err := c.RoundTrip(request(t, http.MethodPost, "/v1", "").WithContext(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("a request whose context is done: %v", err)
	}
	body = answer(t, c, t.Context())
	if err := errors.Join(body.Close(), body.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := body.Read(make([]byte, 8)); !errors.Is(err, errClosed) {
		t.Errorf("after the close: %v", err)
	}
}

// TestRequestBody is read to its end and closed, and a failure of it is told.
func TestRequestBody(t *testing.T) {
	c := open(t, paced, None)
	r := request(t, http.MethodPost, "/v1", "")
	sent := &sentBody{Reader: strings.NewReader("{}")}
	r.Body = sent
	if _, err := c.RoundTrip(r); err != nil || !sent.closed {
		t.Errorf("error %v, closed %v", err, sent.closed)
	}
	broken := errors.New("client gone")
	sent = &sentBody{Reader: io.MultiReader(strings.NewReader("{"), failing{broken})}
	r.Body = sent
	if _, err := c.RoundTrip(r); !errors.Is(err, broken) || !sent.closed {
		t.Errorf("error %v, closed %v; want %v", err, sent.closed, broken)
	}
	r = request(t, http.MethodPost, "/v1", "")
	r.Body = nil
	if _, err := c.RoundTrip(r); err != nil {
		t.Errorf("a request without a body: %v", err)
	}
}

type sentBody struct {
	io.Reader
	closed bool
}

func (b *sentBody) Close() error { b.closed = true; return nil }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestConcurrent asks from many sides at once: each exchange that is not to be
// repeated is given out once.
func TestConcurrent(t *testing.T) {
	const n = 64
	var b strings.Builder
	b.WriteString(`{"cassette":1,"about":"many","source":"written"}` + "\n")
	for range n {
		b.WriteString(`{"request":{"method":"POST","path":"/v1"}}` + "\n" + `{"response":{"status":200}}` + "\n" + `{"end":true}` + "\n")
	}
	c := open(t, b.String(), None)
	var hits, misses atomic.Int64
	var wait sync.WaitGroup
	for range 2 * n {
		wait.Go(func() {
			resp, err := c.RoundTrip(request(t, http.MethodPost, "/v1", ""))
			switch {
			case err != nil:
				t.Error(err)
			case resp.StatusCode == statusMiss:
				misses.Add(1)
			default:
				hits.Add(1)
			}
		})
	}
	wait.Wait()
	if hits.Load() != n || misses.Load() != n || len(c.Unused()) != 0 {
		t.Errorf("%d hits, %d misses, %d unused; want %d, %d, 0", hits.Load(), misses.Load(), len(c.Unused()), n, n)
	}
}
