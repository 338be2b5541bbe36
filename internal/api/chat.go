package api

import (
	"cmp"
	"context"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/journal"
)

// ChatRequest is the body of /chat/stream: something that is said, or a run to go
// on with.
type ChatRequest struct {
	Session string `json:"session,omitempty"` // the conversation to go on with
	Profile string `json:"profile,omitempty"`
	Message string `json:"message,omitempty"`
	By      string `json:"by,omitempty"` // who says it
	Resume  string `json:"resume,omitempty"`
}

func (c ChatRequest) check() error {
	switch {
	case c.Resume != "" && c != (ChatRequest{Resume: c.Resume, By: c.By}):
		return failf(BadRequest, "member \"resume\" stands alone: what goes on is the run's own")
	case c.Resume == "" && strings.TrimSpace(c.Message) == "":
		return failf(BadRequest, "member \"message\" or \"resume\" is missing")
	}
	return nil
}

// chat answers POST /chat/stream. With {resume} the header Last-Event-ID says what
// the client has seen; without it the story goes on behind the run's last pause.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) error {
	streamed, err := wantsStream(r)
	if err != nil {
		return err
	}
	var body ChatRequest
	if err := readBody(w, r, &body); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	story, err := s.turn(w, r, body)
	if err != nil {
		return err
	}
	if streamed {
		return s.stream(w, r, story)
	}
	return writeDone(w, story(r.Context()))
}

// turn begins or goes on with a turn, and returns what there is to see of it.
func (s *Server) turn(w http.ResponseWriter, r *http.Request, body ChatRequest) (items, error) {
	after, err := lastEvent(r)
	if err != nil {
		return nil, err
	}
	if body.Resume == "" {
		if !after.IsZero() {
			return nil, failf(BadRequest, "a message has no event to go on behind: leave Last-Event-ID out")
		}
		ref, err := s.turns.Begin(r.Context(), chat.Message{
			Session: body.Session, Profile: body.Profile, Text: body.Message, By: orLocal(by(r, body.By)),
		})
		if err != nil {
			return nil, err
		}
		w.Header().Set("Stoplog-Run", string(ref.Run))
		return s.follow(ref, chat.Position{}), nil
	}
	if _, err := journal.Partial(journal.RunPrefix, body.Resume); err != nil {
		return nil, failf(BadRequest, "member \"resume\": %v", err)
	}
	going, err := s.turns.GoOn(r.Context(), body.Resume)
	if err != nil {
		return nil, err
	}
	w.Header().Set("Stoplog-Run", string(going.Ref.Run))
	if going.Waits != nil && (after.IsZero() || !going.After.After(after)) {
		return single(*going.Waits), nil
	}
	return s.follow(going.Ref, cmp.Or(after, going.After)), nil
}

func (s *Server) follow(ref journal.Ref, after chat.Position) items {
	return func(ctx context.Context) iter.Seq2[chat.Item, error] { return s.turns.Turn(ctx, ref, after) }
}

// writeDone answers with the last item alone.
func writeDone(w http.ResponseWriter, items iter.Seq2[chat.Item, error]) error {
	for item, err := range items {
		if err != nil {
			return err
		}
		if done, ok := item.Event.(chat.Done); ok {
			writeJSON(w, http.StatusOK, done)
			return nil
		}
	}
	return failf(Internal, "the run has no end")
}

// wantsStream reads the header Accept. Who does not say gets the stream.
func wantsStream(r *http.Request) (bool, error) {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return true, nil
	}
	best, json := -1.0, -1.0
	for entry := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(entry)
		if err != nil {
			continue
		}
		q := 1.0
		if v, err := strconv.ParseFloat(params["q"], 64); err == nil {
			q = v
		}
		switch kind {
		case "text/event-stream", "text/*", "*/*":
			best = max(best, q)
		case "application/json", "application/*":
			json = max(json, q)
		}
	}
	if best <= 0 && json <= 0 {
		return false, failf(Unspeakable, "there is text/event-stream and application/json here, and not %.100q", accept)
	}
	// Who names JSON means it: clients add */* by themselves.
	return json <= 0 || best > json, nil
}

// lastEvent reads the header Last-Event-ID.
func lastEvent(r *http.Request) (chat.Position, error) {
	p, err := chat.ParsePosition(r.Header.Get("Last-Event-ID"))
	if err != nil {
		return p, failf(BadRequest, "header Last-Event-ID: %v", err)
	}
	return p, nil
}

// orLocal is who acts, where nobody says: whoever has this machine.
func orLocal(by string) string {
	if by = strings.TrimSpace(by); by != "" {
		return by
	}
	return "local"
}
