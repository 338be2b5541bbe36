package cassette

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// statusMiss is the status of an answer to a request that no exchange is for. No
// provider has it.
const statusMiss = 599

// RoundTrip answers from the cassette, with the next exchange that matches. It
// fails only if the request's body cannot be read or its context is done; a
// request that no exchange is for gets status 599 and a JSON body that says what
// was nearest.
func (c *Cassette) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	body, err := readBody(r)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("replay a cassette: %w", err)
	}
	e, nearest := c.take(r.Method, r.URL.Path, body)
	if e == nil {
		e = missed(r.Method, r.URL.Path, nearest)
	}
	return &http.Response{
		Status:        strconv.Itoa(e.status) + " " + http.StatusText(e.status),
		StatusCode:    e.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        e.header.Clone(),
		Body:          &reply{ctx: ctx, pace: c.Pace, whole: e.whole, pieces: e.pieces, closed: make(chan struct{})},
		ContentLength: -1,
		Request:       r,
	}, nil
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	return body, errors.Join(err, r.Body.Close())
}

// missed makes the answer to a request that no exchange is for.
func missed(method, path string, nearest miss) *exchange {
	var said struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Nearest string `json:"nearest"`
			Differs string `json:"differs"`
		} `json:"error"`
	}
	said.Error.Code = "cassette_miss"
	said.Error.Nearest = nearest.exchange.String()
	said.Error.Differs = nearest.differs
	said.Error.Message = fmt.Sprintf("no exchange is for %s %s: the nearest is %s, and %s differs", method, path, nearest.exchange, nearest.differs)
	if nearest.differs == used {
		said.Error.Message = fmt.Sprintf("no exchange is left for %s %s: %s was used", method, path, nearest.exchange)
	}
	data, err := json.Marshal(said)
	if err != nil {
		panic(err) // strings have a JSON form
	}
	return &exchange{
		status: statusMiss,
		header: http.Header{"Content-Type": {"application/json"}},
		pieces: []piece{{data: data}},
		whole:  true,
	}
}

// reply is the body of an answer. One read gives one piece at most; a piece
// larger than what is read into is given over several.
type reply struct {
	ctx    context.Context
	pace   Pace
	whole  bool
	pieces []piece // still to come

	rest   []byte // of the piece that has come
	once   sync.Once
	closed chan struct{}
}

var errClosed = errors.New("read of a cassette's body after it was closed")

func (b *reply) Read(p []byte) (int, error) {
	for {
		if err := b.done(); err != nil {
			return 0, err
		}
		if len(b.rest) > 0 || len(p) == 0 {
			n := copy(p, b.rest)
			b.rest = b.rest[n:]
			return n, nil
		}
		if len(b.pieces) == 0 {
			if b.whole {
				return 0, io.EOF
			}
			return 0, io.ErrUnexpectedEOF
		}
		if err := b.wait(b.pieces[0].after); err != nil {
			return 0, err
		}
		b.rest, b.pieces = b.pieces[0].data, b.pieces[1:]
	}
}

// done says why nothing more is read, if so.
func (b *reply) done() error {
	select {
	case <-b.closed:
		return errClosed
	default:
		return b.ctx.Err()
	}
}

// wait lets a piece's time pass, unless the body is done before.
func (b *reply) wait(d time.Duration) error {
	if b.pace != Real || d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-b.closed:
		return errClosed
	}
}

// Close ends a read that waits, from whatever goroutine.
func (b *reply) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}
