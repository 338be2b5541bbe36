package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/auth"
	"github.com/stoplog/stoplog/internal/journal"
)

// ring is a store of keys in memory.
type ring struct{ keys []auth.Key }

func (r *ring) AuthKeys(context.Context) ([]auth.Key, error) { return slices.Clone(r.keys), nil }

func (r *ring) AddAuthKey(_ context.Context, k auth.Key) error {
	r.keys = append(r.keys, k)
	return nil
}

func (*ring) RevokeAuthKey(context.Context, string, time.Time, string) (bool, error) {
	return false, nil
}

// TestRolesOfRoutes asks every route with a key of every role, and none.
func TestRolesOfRoutes(t *testing.T) {
	h := open(t, approving(), Options{})
	keys, tokens := &ring{}, map[auth.Role]string{"": ""}
	for _, role := range auth.Roles {
		_, token, err := auth.Create(t.Context(), keys, sha256.Sum256, time.Now(), auth.Key{Name: "the " + string(role), Role: role})
		if err != nil {
			t.Fatal(err)
		}
		tokens[role] = token
	}
	server := httptest.NewServer(h.handler.Behind(&auth.Ring{Store: keys, Digest: sha256.Sum256, Required: true}))
	t.Cleanup(server.Close)
	var got []string
	for _, route := range h.handler.Paths() {
		method, path, _ := strings.Cut(route, " ")
		path = strings.NewReplacer("{run}", "run_0", "{id}", "apr_0").Replace(path)
		line := route
		for _, role := range append([]auth.Role{""}, auth.Roles...) {
			r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader("{"))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = "stoplog.example.com" // keys are required: any name will do
			r.Header.Set("Content-Type", "application/json")
			if tokens[role] != "" {
				r.Header.Set("Authorization", "Bearer "+tokens[role])
			}
			resp, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			switch {
			case role == "" && resp.StatusCode != http.StatusUnauthorized:
				t.Errorf("%s without a key: %d", route, resp.StatusCode)
			case role != "" && resp.StatusCode != http.StatusForbidden:
				line += " " + string(role)
			}
		}
		got = append(got, line)
	}
	want := []string{
		"POST /chat/stream operator admin",
		"GET /v1/budgets viewer approver operator admin",
		"GET /v1/playbooks viewer approver operator admin", "GET /v1/playbooks/{run} viewer approver operator admin",
		"GET /v1/runs viewer approver operator admin",
		"GET /v1/runs/{run} viewer approver operator admin",
		"GET /v1/runs/{run}/events viewer approver operator admin",
		"POST /v1/runs/{run}/cancel operator admin",
		"POST /v1/runs/{run}/resolve operator admin",
		"GET /v1/approvals viewer approver operator admin",
		"GET /v1/approvals/{id} viewer approver operator admin",
		"POST /v1/approvals/{id}/approve approver admin",
		"POST /v1/approvals/{id}/deny approver admin",
		"POST /v1/approvals/{id}/answer approver admin",
		"GET /v1/approvals/{id}/answer app operator admin",
		"GET /v1/approvals/{id}/withheld approver admin",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestWhoDecides is whose key it is, whatever the body claims.
func TestWhoDecides(t *testing.T) {
	h := open(t, approving(), Options{})
	keys := &ring{}
	_, token, err := auth.Create(t.Context(), keys, sha256.Sum256, time.Now(), auth.Key{Name: "bob", Role: auth.Admin})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h.handler.Behind(&auth.Ring{Store: keys, Digest: sha256.Sum256, Required: true}))
	t.Cleanup(server.Close)
	post := func(path, body string) string {
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json")
		r.Header.Set("X-Api-Key", token)
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", path, resp.StatusCode, b, err)
		}
		return string(b)
	}
	post("/chat/stream", `{"message":"clean up","by":"eve"}`)
	if h.begun[0].By != "bob" {
		t.Errorf("the turn is begun by %q", h.begun[0].By)
	}
	qs, err := h.store.Questions(t.Context(), journal.QuestionQuery{Tenant: journal.DefaultTenant})
	if err != nil || len(qs) != 1 {
		t.Fatalf("%d questions, %v", len(qs), err)
	}
	q := qs[0]
	decided := post("/v1/approvals/"+string(q.ID)+"/approve", fmt.Sprintf(`{"digest":"%x","by":"eve"}`, q.Digest))
	if !strings.Contains(decided, `"by":"bob"`) || strings.Contains(decided, "eve") {
		t.Errorf("decided is %s", decided)
	}
}
