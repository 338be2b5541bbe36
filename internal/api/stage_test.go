package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/journal/sqlite"
)

// stage is an engine that plays a part written beforehand, on a real journal: the
// records of a run in acts, with a question or a doubt between.
type stage struct {
	t     *testing.T
	store journal.Store
	ids   *journal.IDs
	acts  [][]line
	// between is the status in which an act before the last leaves the run.
	between journal.Status
	end     journal.Change

	mu    sync.Mutex
	begun []chat.Start
	// cancelled and resolved are what was asked of the run.
	cancelled []string
	resolved  []Resolution
	next      map[journal.ID]int // the act that a run plays next
}

// line is a record: its kind, and its payload without the version. ASK stands for
// the id and the digest of the question that the line is about.
type line struct{ kind, payload string }

var worker = journal.Worker{Owner: "stage"}

func (s *stage) Start(ctx context.Context, start chat.Start) (journal.Ref, error) {
	if start.Profile == "gone" {
		return journal.Ref{}, fmt.Errorf("profile %s: %w", start.Profile, chat.ErrProfile)
	}
	id, err := s.ids.New(journal.RunPrefix)
	if err != nil {
		return journal.Ref{}, err
	}
	s.mu.Lock()
	s.begun = append(s.begun, start)
	s.mu.Unlock()
	ref := journal.Ref{Tenant: start.Tenant, Run: id}
	err = s.store.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
		return tx.Create(ctx, journal.Run{Ref: ref, Kind: journal.TurnRun, Session: start.Session, Profile: start.Profile, Starter: start.By})
	})
	if err != nil {
		return ref, err
	}
	return ref, s.Resume(ctx, ref)
}

// Resume plays the run's next act.
func (s *stage) Resume(ctx context.Context, ref journal.Ref) error {
	s.mu.Lock()
	n := s.next[ref.Run]
	s.next[ref.Run]++
	s.mu.Unlock()
	return s.store.Update(ctx, func(ctx context.Context, tx journal.Tx) error {
		l, err := tx.Claim(ctx, ref, worker, time.Hour)
		if err != nil {
			return err
		}
		for _, said := range s.acts[n] {
			if err := s.say(ctx, tx, l, said); err != nil {
				return err
			}
		}
		if n < len(s.acts)-1 {
			return tx.SetStatus(ctx, l, journal.Change{Status: s.between})
		}
		return tx.SetStatus(ctx, l, s.end)
	})
}

// say appends a line. One that asks also has its question asked, one that decides
// takes what was decided.
func (s *stage) say(ctx context.Context, tx journal.Tx, l journal.Lease, said line) error {
	payload := said.payload
	call := approval.Call{Run: l.Run, Step: 1, Call: 1, Tool: "run_command", Args: json.RawMessage(`{"argv":["make"]}`)}
	switch said.kind {
	case "asked":
		id, err := s.ids.New(journal.ApprovalPrefix)
		if err != nil {
			return err
		}
		q, err := approval.Ask(ctx, tx, l, approval.Request{ID: id, About: "call", Subject: call, Expires: time.Now().Add(time.Hour)})
		if err != nil {
			return err
		}
		payload = fmt.Sprintf(payload, q.ID, hex.EncodeToString(q.Digest[:]), q.Expires.UTC().Format(time.RFC3339))
	case "decided":
		qs, err := tx.Questions(ctx, journal.QuestionQuery{Tenant: l.Tenant, Run: l.Run})
		if err != nil {
			return err
		}
		if _, err := tx.Use(ctx, l, qs[0].ID); err != nil {
			return err
		}
		payload = fmt.Sprintf(payload, qs[0].ID, hex.EncodeToString(qs[0].Digest[:]))
	}
	e, err := journal.NewEntry(said.kind, 1, journal.Text, json.RawMessage(payload))
	if err != nil {
		return err
	}
	_, err = tx.Append(ctx, l, e)
	return err
}

func (s *stage) Decide(ctx context.Context, tenant string, d approval.Decision) (journal.Question, error) {
	return approval.Decide(ctx, s.store, tenant, d, nil)
}

func (s *stage) Cancel(ctx context.Context, ref journal.Ref, by string) error {
	s.cancelled = append(s.cancelled, by)
	return s.store.Update(ctx, func(ctx context.Context, tx journal.Tx) error { return tx.AskCancel(ctx, ref, by) })
}

func (s *stage) Resolve(_ context.Context, _ journal.Ref, r Resolution) error {
	s.resolved = append(s.resolved, r)
	return nil
}

// theatre is a stage, a server before it, and a client before that.
type theatre struct {
	*stage
	server  *httptest.Server
	handler *Server
	client  *Client
	// answered has the path of each request whose handler has returned.
	answered chan string
}

func open(t *testing.T, s *stage, o Options) *theatre {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.t, s.store, s.ids, s.next = t, store, journal.NewIDs(time.Now, rand.Reader), map[journal.ID]int{}
	o.Store, o.Engine, o.IDs = store, s, s.ids
	handler, answered := New(o), make(chan string, 10000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { answered <- r.URL.Path }()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &theatre{
		stage: s, server: server, handler: handler, answered: answered,
		client: &Client{Transport: server.Client().Transport, Base: server.URL},
	}
}

// approving is a turn in two acts: a call is asked about, and it runs.
func approving() *stage {
	return &stage{
		between: journal.WaitingApproval,
		end:     journal.Change{Status: journal.Completed, Reason: "completed"},
		acts: [][]line{{
			{"created", `{"task":"clean up","limits":{}}`},
			{"claimed", `{"by":"stage"}`},
			{"model_started", `{"step":1,"attempt":1}`},
			{"text_released", `{"step":1,"attempt":1,"channel":"text","start":0,"text":"I will <clean> up."}`},
			{"model_answered", `{"step":1,"attempt":1,"answer":{"text":"I will <clean> up.","finish":"stop","calls":[{"id":"a","tool":"run_command","args":"{\"argv\":[\"make\"]}","ruling":"gated"},{"id":"b","tool":"wipe","args":"{}","ruling":"forbidden","why":"the profile"}]}}`},
			{"asked", `{"step":1,"about":"call","call":1,"id":%q,"digest":%q,"expires":%q}`},
			{"step_evaluated", `{"step":1,"pause":1}`},
		}, {
			{"decided", `{"approved":true,"by":"ann","id":%q,"digest":%q}`},
			{"claimed", `{"by":"stage"}`},
			{"call_started", `{"step":1,"call":1}`},
			{"call_finished", `{"step":1,"call":1,"failed":false,"text":"made"}`},
			{"step_evaluated", `{"step":1}`},
			{"model_started", `{"step":2,"attempt":1}`},
			{"text_released", `{"step":2,"attempt":1,"channel":"text","start":0,"text":"It is clean."}`},
			{"model_answered", `{"step":2,"attempt":1,"answer":{"text":"It is clean.","finish":"stop"}}`},
			{"step_evaluated", `{"step":2}`},
			{"ended", `{"status":"completed","reason":"completed"}`},
		}},
	}
}

// blocked is a turn that a guard stops.
func blocked() *stage {
	return &stage{
		end: journal.Change{Status: journal.Blocked, Reason: "guard_denied"},
		acts: [][]line{{
			{"created", `{"task":"tell me","limits":{}}`},
			{"claimed", `{"by":"stage"}`},
			{"model_started", `{"step":1,"attempt":1}`},
			{"text_released", `{"step":1,"attempt":1,"channel":"text","start":0,"text":"It is "}`},
			{"model_withheld", `{"step":1,"attempt":1,"deny":true,"guard":"pii","request":false,"rule":"ssn","text":"It is "}`},
			{"step_evaluated", `{"step":1}`},
			{"ended", `{"status":"blocked","reason":"guard_denied","message":"Stopped: guard pii denied the answer (rule ssn). What ran: 0 tool calls. Nothing further will run."}`},
		}},
	}
}
