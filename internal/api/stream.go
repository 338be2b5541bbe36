package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/sse"
)

// errBroken: a stream that has begun cannot go on. Its client sees that it was
// cut off, since its Done is missing, and comes back with the last id.
var errBroken = errors.New("the stream is broken")

// items is a story, read until ctx ends.
type items func(ctx context.Context) iter.Seq2[chat.Item, error]

// stream sends items as server-sent events until they end or the client has left.
// What has no position is sent without an id. While nothing comes there is a
// comment now and then, of one line: a blank line behind it would be an empty
// event to some.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, story items) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy in between passes on what it gets
	w.WriteHeader(http.StatusOK)
	out := &sender{w: w, rc: http.NewResponseController(w), patience: s.Patience}

	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	next := make(chan fetched)
	go fetch(ctx, story(ctx), next) // ends when the context does, and closes next
	defer func() {
		stop()
		for range next {
		}
	}()
	if err := out.flush(); err != nil {
		return err
	}
	for {
		var line []byte
		select {
		case f, more := <-next:
			if !more {
				return nil
			}
			if f.err != nil {
				return fmt.Errorf("%w: %w", errBroken, f.err)
			}
			var err error
			if line, err = frame(f.item); err != nil {
				return fmt.Errorf("%w: %w", errBroken, err)
			}
		case <-time.After(s.Heartbeat):
			line = sse.AppendComment(nil, "waiting")
		case <-ctx.Done():
			return errBroken // the client has left, or the server ends
		}
		if err := out.send(line); err != nil {
			return err
		}
	}
}

type fetched struct {
	item chat.Item
	err  error
}

// fetch hands items over one by one, as they are asked for.
func fetch(ctx context.Context, items iter.Seq2[chat.Item, error], next chan<- fetched) {
	defer close(next)
	for item, err := range items {
		select {
		case next <- fetched{item, err}:
		case <-ctx.Done():
			return
		}
	}
}

// frame is an item on the wire.
func frame(i chat.Item) ([]byte, error) {
	data, err := chat.Encode(i.Event)
	if err != nil {
		return nil, err
	}
	var b []byte
	if !i.At.IsZero() {
		b = append(b, "id: "+i.At.String()+"\n"...)
	}
	return sse.AppendEvent(b, i.Event.Name(), data), nil
}

// sender writes to a client that must read.
type sender struct {
	w        http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
}

func (s *sender) send(b []byte) error {
	// Where there is no deadline to set, as in a test, the client is patient.
	_ = s.rc.SetWriteDeadline(time.Now().Add(s.patience))
	if _, err := s.w.Write(b); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return s.flush()
}

func (s *sender) flush() error {
	if err := s.rc.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// single is a story of one event that has no place in the log.
func single(e chat.Event) items {
	return func(context.Context) iter.Seq2[chat.Item, error] {
		return func(yield func(chat.Item, error) bool) { yield(chat.Item{Event: e}, nil) }
	}
}
