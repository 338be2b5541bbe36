package flow

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/stoplog/stoplog/internal/flow/steps"
	"github.com/stoplog/stoplog/internal/prompt"
	"github.com/stoplog/stoplog/playbook"
)

// Forecast is what a run of a playbook may come to, before it is started: a bound
// on everything, and a promise of nothing.
type Forecast struct {
	Playbook string          `json:"playbook"`
	Inputs   []steps.Value   `json:"inputs,omitempty"`
	Steps    []ForecastStep  `json:"steps"`
	Tokens   int64           `json:"max_tokens"` // of all questions to models together
	Models   []ForecastModel `json:"models,omitempty"`
	// USD is the most that the tokens can cost; nil if a price is not known.
	USD *float64 `json:"max_usd"`
}

// ForecastModel is what a run may ask of a model.
type ForecastModel struct {
	Model  string   `json:"model"` // as it is pinned
	Tokens int64    `json:"max_tokens"`
	USD    *float64 `json:"max_usd"`
}

// ForecastStep is what a step may come to.
type ForecastStep struct {
	ID       string       `json:"id"`
	Type     steps.Type   `json:"type"`
	After    []string     `json:"after,omitempty"`
	Handler  bool         `json:"handler,omitempty"`
	When     string       `json:"when,omitempty"`
	Effect   string       `json:"effect,omitempty"`
	Touches  []string     `json:"touches,omitempty"`
	Command  []string     `json:"command,omitempty"` // its words, as they are written
	Calls    string       `json:"calls,omitempty"`   // the playbook
	Scope    Scope        `json:"scope"`
	Times    int          `json:"max_times"` // how often it may be started
	Timeout  string       `json:"timeout,omitempty"`
	Asks     *ForecastAsk `json:"asks,omitempty"`
	Observer *ForecastAsk `json:"observer,omitempty"`
	Part     *Forecast    `json:"part,omitempty"` // of the playbook that it calls
}

// ForecastAsk is a question to a model.
type ForecastAsk struct {
	Via        Via      `json:"via"`
	Model      string   `json:"model"`
	Prompt     string   `json:"prompt"`
	MaxTokens  int64    `json:"max_tokens_per_run"`
	MaxLatency int64    `json:"max_latency_seconds"`
	Verdicts   []string `json:"verdicts,omitempty"`
	Scope      Scope    `json:"scope"`
}

// Price is the most that a token of a model can cost, in dollars; false if that is
// not known. The model is NAME-DATE.
type Price func(model string) (float64, bool)

// Foresee says what a run that begins so may come to.
func Foresee(created steps.Created, price Price) (Forecast, error) {
	f, tokens, err := foresee(created.Book, created.Plan, 0)
	if err != nil {
		return f, err
	}
	f.Inputs = created.Book.Inputs
	known, total := true, 0.0
	for _, model := range slices.Sorted(maps.Keys(tokens)) {
		m := ForecastModel{Model: model, Tokens: tokens[model]}
		f.Tokens = sum(f.Tokens, m.Tokens)
		pin, err := prompt.ParsePin(model)
		each, ok := 0.0, false
		if err == nil && price != nil {
			each, ok = price(pin.Sent())
		}
		if ok {
			usd := each * float64(m.Tokens)
			m.USD, total = &usd, total+usd
		}
		known = known && ok
		f.Models = append(f.Models, m)
	}
	if known {
		f.USD = &total
	}
	return f, nil
}

// foresee says what a playbook may come to, and the tokens of each model.
func foresee(book steps.Book, plan steps.Plan, depth int) (f Forecast, tokens map[string]int64, err error) {
	tokens = map[string]int64{}
	if depth > maxDepth {
		return f, nil, fmt.Errorf("playbooks call each other more than %d deep", maxDepth)
	}
	s, err := open(book)
	if err != nil {
		return f, nil, err
	}
	f.Playbook, f.Steps = s.pb.Name.Value, []ForecastStep{}
	for i, step := range s.pb.Steps {
		fs := forecastStep(step, plan, i+1)
		for _, ask := range []*ForecastAsk{fs.Asks, fs.Observer} {
			if ask != nil {
				tokens[ask.Model] = sum(tokens[ask.Model], times(ask.MaxTokens, fs.Times))
			}
		}
		if call, ok := step.Work.(*playbook.Call); ok {
			part, theirs, err := foreseeCall(book, call, depth)
			if err != nil {
				return f, nil, fmt.Errorf("step %s: %w", step.ID.Value, err)
			}
			fs.Part = &part
			for model, n := range theirs {
				tokens[model] = sum(tokens[model], times(n, fs.Times))
			}
		}
		f.Steps = append(f.Steps, fs)
	}
	return f, tokens, nil
}

func foreseeCall(book steps.Book, call *playbook.Call, depth int) (Forecast, map[string]int64, error) {
	book.File = called(book.File, call)
	s, err := open(book)
	if err != nil {
		return Forecast{}, nil, err
	}
	plan, err := planOf(s.pb)
	if err != nil {
		return Forecast{}, nil, err
	}
	return foresee(book, plan, depth+1)
}

func forecastStep(step *playbook.Step, plan steps.Plan, n int) ForecastStep {
	p := plan.Steps[n-1]
	fs := ForecastStep{
		ID: p.ID, Type: p.Type, Handler: p.Handler, When: step.When.Value, Effect: string(step.Effect.Value),
		Scope: scopeOf(step.Scope), Times: plan.Times(n), Timeout: forecastTimeout(step),
	}
	for _, a := range p.After {
		fs.After = append(fs.After, plan.Steps[a-1].ID)
	}
	for _, t := range step.Touches {
		fs.Touches = append(fs.Touches, string(t.Value))
	}
	switch work := step.Work.(type) {
	case *playbook.Run:
		for _, w := range work.Argv {
			word := w.Value
			if w.Expr {
				word = "{expr: " + word + "}"
			}
			fs.Command = append(fs.Command, word)
		}
	case *playbook.Claude:
		fs.Asks = forecastAsk(&work.Ask, work.OnVerdict, fs.Scope)
	case *playbook.Agent:
		fs.Asks = forecastAsk(&work.Ask, nil, fs.Scope)
	case *playbook.Call:
		fs.Calls = work.File.Value
	}
	if ob := step.Observer; ob != nil {
		fs.Observer = forecastAsk(&ob.Ask, ob.OnVerdict, scopeOf(ob.Scope))
	}
	return fs
}

func forecastTimeout(step *playbook.Step) string {
	if step.Timeout.Written() {
		return step.Timeout.Value.String()
	}
	if _, ok := step.Work.(*playbook.Run); ok {
		return defaultTimeout.String()
	}
	return ""
}

func forecastAsk(ask *playbook.Ask, verdicts []playbook.Verdict, scope Scope) *ForecastAsk {
	f := &ForecastAsk{
		Via: ViaCLI, Model: ask.Model.Value, Prompt: ask.PromptRef.Value,
		MaxTokens: ask.MaxTokens.Value, MaxLatency: ask.MaxLatency.Value, Scope: scope,
	}
	if ask.Via.Value == playbook.API {
		f.Via = ViaAPI
	}
	for _, v := range verdicts {
		f.Verdicts = append(f.Verdicts, v.Value.Value)
	}
	return f
}

// times and sum count tokens, and stop at the largest number there is.
func times(n int64, by int) int64 {
	if by > 0 && n > math.MaxInt64/int64(by) {
		return math.MaxInt64
	}
	return n * int64(by)
}

func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
