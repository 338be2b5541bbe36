package dial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ErrSilent says that a body was given up because nothing came of it for too
// long, though its connection stands.
var ErrSilent = errors.New("the answer's body fell silent")

// watched makes a call whose body is given up when it falls silent.
func (t *transport) watched(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	resp, err := t.pool.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	b := &watchedBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, silence: t.silence}
	b.timer = time.AfterFunc(t.silence, func() { cancel(fmt.Errorf("%w for %s", ErrSilent, t.silence)) })
	b.timer.Stop() // it runs while somebody reads
	resp.Body = b
	return resp, nil
}

// A watchedBody is read under a watch: only while a read waits does time count, since a
// reader who is slow is not the server's fault.
type watchedBody struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	silence time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.silence)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF && errors.Is(context.Cause(b.ctx), ErrSilent) {
		err = context.Cause(b.ctx)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
