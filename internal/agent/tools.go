package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/internal/engine"
	"github.com/stoplog/stoplog/internal/journal"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/internal/tool"
)

// session opens the session of a run: the tools of its folder, under its
// profile. Without a folder there are none.
func (w *worker) session(r journal.Run) (*govern.Session, func(), error) {
	done := func() {}
	cfg := govern.SessionConfig{
		Profile: w.Name, Run: string(r.Run), Workdir: r.Workdir, ProfileDigest: w.digest, Fence: begun{},
	}
	dir := r.Workdir
	if dir == "" {
		dir = "." // to know the tools by; nothing is called there
	}
	work, err := tool.OpenWorkdir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open the folder of the run: %w", err)
	}
	done = func() { work.Close() }
	cfg.Tools = work.Tools()
	s, err := w.door.OpenSession(cfg)
	if err != nil {
		done()
		return nil, nil, err
	}
	return s, done, nil
}

// begun is the fence of calls that the engine has fenced: it has written the
// start of this one, durably, and used its approval up, before the call got
// here, and writes its end before anybody sees it.
type begun struct{}

func (begun) Begin(context.Context, govern.Start) error               { return nil }
func (begun) Done(context.Context, govern.Start, govern.Result) error { return nil }

// Call implements [engine.Tools].
func (w *worker) Call(ctx context.Context, c engine.ToolCall) engine.ToolResult {
	broken := func(err error) engine.ToolResult {
		return engine.ToolResult{Text: "the call was not carried out: " + err.Error(), Failed: true}
	}
	if c.Run.Workdir == "" {
		return broken(errors.New("the run has no folder to work in"))
	}
	if !c.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.Deadline)
		defer cancel()
	}
	s, done, err := w.session(c.Run)
	if err != nil {
		return broken(err)
	}
	defer done()
	var approval govern.Approval
	if c.Approved {
		if approval, err = w.approval(ctx, c); err != nil {
			return broken(err)
		}
	}
	r, err := s.Call(ctx, govern.Call{Step: c.Step, Number: c.Call, Tool: c.Tool, Args: c.Args}, approval)
	if err != nil {
		return broken(err)
	}
	return engine.ToolResult{Text: r.Text, Failed: r.Failed}
}

// approval finds what a person approved for a call. The session holds it against
// the call that would run.
func (w *worker) approval(ctx context.Context, c engine.ToolCall) (govern.Approval, error) {
	q := journal.QuestionQuery{Tenant: c.Run.Tenant, Run: c.Run.Run, State: journal.QuestionApproved}
	for {
		rows, err := w.store.Questions(ctx, q)
		if err != nil {
			return govern.Approval{}, fmt.Errorf("look for the approval: %w", err)
		}
		if len(rows) == 0 {
			return govern.Approval{}, errors.New("there is no approval of it")
		}
		for _, row := range rows {
			var shown struct{ Step, Call int }
			if row.About == run.AboutCall.String() && json.Unmarshal(row.Shown, &shown) == nil && shown.Step == c.Step && shown.Call == c.Call {
				return govern.Approval{ID: string(row.ID), Digest: govern.Digest(row.Digest)}, nil
			}
			q.Before = row.ID
		}
	}
}

var _ engine.Tools = (*worker)(nil)
