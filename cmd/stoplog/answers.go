package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/keep"
)

// given are the answers that the door keeps, as the control interface gives them
// out.
type given struct{ *keep.Answers }

// Answer implements [api.Answers].
func (g given) Answer(ctx context.Context, id journal.ID, key string, header http.Header) (api.Released, *api.Refusal, error) {
	a, err := g.Answers.Answer(ctx, string(id), govern.Who(key, header), "")
	if no := (*govern.NotGivenError)(nil); errors.As(err, &no) {
		return api.Released{}, &api.Refusal{Status: no.Status, Code: api.Code(no.Code), Message: no.Words}, nil
	}
	return api.Released(a), nil, err
}
