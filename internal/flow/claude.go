package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/prompt"
	"github.com/stoplog/stoplog/internal/run"
	"github.com/stoplog/stoplog/playbook"
)

// claude asks a model for a verdict.
func (w *attempt) claude(ctx context.Context, work *playbook.Claude) steps.Result {
	sc, err := sceneOf(w.state)
	if err != nil {
		return failed(err)
	}
	text, err := w.hold.script.render(sc, &work.Ask)
	if err != nil {
		return failed(err)
	}
	env := map[string]string{}
	for _, v := range w.step.Env {
		if env[v.Name.Value], err = sc.word(v.Value); err != nil {
			return failed(err)
		}
	}
	q, err := w.inquiry(&work.Ask, text, work.Output)
	if err != nil {
		return failed(err)
	}
	q.Scope, q.Env = scopeOf(w.step.Scope), env
	out := newOutput(ctx, w, func() {})
	q.Show = out.show
	if w.step.Timeout.Written() {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, w.step.Timeout.Value)
		defer stop()
	}
	j := w.hold.h.Judge.Judge(ctx, q)
	if _, err := out.end(); err != nil {
		return failed(err)
	}
	if j.State == steps.Cancelled && context.Cause(ctx) == context.DeadlineExceeded {
		j.State, j.Reason = steps.FailedTimeout, "it took longer than "+w.step.Timeout.Value.String()
	}
	return judgementResult(j, out.kept("text"))
}

// inquiry is what is to be asked, but for its scope.
func (w *attempt) inquiry(ask *playbook.Ask, text string, schema *playbook.Schema) (Inquiry, error) {
	pin, err := prompt.ParsePin(ask.Model.Value)
	if err != nil {
		return Inquiry{}, err
	}
	via := ViaCLI
	if ask.Via.Value == playbook.API {
		via = ViaAPI
	}
	q := Inquiry{
		Run: w.hold.row.Ref, Playbook: w.hold.script.pb.Name.Value, Step: w.step.ID.Value, Attempt: w.number,
		Via: via, Profile: w.hold.profile.Name, Model: pin.Sent(), Prompt: text, Workdir: w.hold.row.Workdir,
		MaxLatency: time.Duration(ask.MaxLatency.Value) * time.Second, MaxTokens: ask.MaxTokens.Value,
	}
	if schema != nil {
		q.Schema = schema.JSON
	}
	return q, nil
}

// judgementResult is what a judgement comes to.
func judgementResult(j Judgement, text string) steps.Result {
	usage := j.Usage
	r := steps.Result{State: j.State, Why: valid(j.Reason), Output: j.Output, Served: valid(j.Served), Text: text, Usage: &usage}
	switch {
	case j.State == steps.Blocked:
		r.Reason = run.ReasonGuardDenied
	case !j.State.Over():
		r.State, r.Why = steps.Failed, fmt.Sprintf("the judge gave no end, but %q", j.State)
	case j.State == steps.Passed:
		verdict, err := verdictOf(j.Output)
		if err != nil {
			r.State, r.Why = steps.FailedSchema, valid(err.Error())
			break
		}
		r.Verdict = verdict
	}
	return r
}

// verdictOf is the verdict in an output.
func verdictOf(output json.RawMessage) (string, error) {
	var has struct {
		Verdict *string `json:"verdict"`
	}
	if err := json.Unmarshal(output, &has); err != nil {
		return "", fmt.Errorf("its output is no object with a verdict: %w", err)
	}
	if has.Verdict == nil {
		return "", fmt.Errorf("its output has no verdict")
	}
	return *has.Verdict, nil
}

// render puts together what a model is told.
func (s *script) render(sc scene, ask *playbook.Ask) (string, error) {
	values, err := sc.texts(ask.With)
	if err != nil {
		return "", fmt.Errorf("put its prompt together: %w", err)
	}
	p := s.prompts[ask]
	if p == nil {
		return "", errNoPrompt
	}
	text, err := p.Render(values)
	if err != nil {
		return "", fmt.Errorf("put its prompt together: %w", err)
	}
	return text, nil
}
