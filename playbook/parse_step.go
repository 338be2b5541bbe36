package playbook

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/prompt"
	"github.com/stoplog/stoplog/internal/yamltree"
)

func (d decoder) steps(m yamltree.Member) []*Step {
	if !d.Is(m.Value, yamltree.List, m.Key) {
		return nil
	}
	if len(m.Value.Items) == 0 {
		d.Errorf(m.Value.Span, "", "the playbook has no steps")
	}
	all := make([]*Step, 0, len(m.Value.Items))
	for _, item := range m.Value.Items {
		if s := d.step(item); s != nil {
			all = append(all, s)
		}
	}
	return all
}

// step reads one step; nil if there is nothing to read.
func (d decoder) step(n yamltree.Node) *Step {
	if !d.Is(n, yamltree.Mapping, "a step") {
		return nil
	}
	kind := d.kind(n)
	if !kind.Written() {
		return &Step{Span: n.Span, ID: d.id(n), flawed: true}
	}
	members, flawed := d.members(n, stepTable(kind.Value))
	s := &Step{Span: n.Span, Type: kind, flawed: flawed}
	s.Work = newWork(kind.Value)
	for _, m := range members {
		d.stepKey(s, m)
	}
	if !flawed {
		d.required(n.Span, members, kind.Value)
	}
	return s
}

// required reports what no step can be read without. The rest that a step must
// have is for the checks, which say why.
func (d decoder) required(at Span, members []yamltree.Member, kind string) {
	has := func(key string) bool {
		return slices.ContainsFunc(members, func(m yamltree.Member) bool { return m.Key == key })
	}
	if !has("id") {
		d.Errorf(at, "write `id: NAME`", "the step has no id")
	}
	if (kind == "run" || kind == "playbook") && !has(kind) {
		d.Errorf(at, "write `"+kind+": …`", "the %s step does not say what to run", kind)
	}
}

func newWork(kind string) Work {
	switch kind {
	case "run":
		return &Run{}
	case "claude":
		return &Claude{}
	case "agent":
		return &Agent{}
	case "pause":
		return &Pause{}
	}
	return &Call{}
}

// id reads the id of a step of which nothing else can be read.
func (d decoder) id(n yamltree.Node) Text {
	for _, m := range n.Members {
		if m.Key == "id" {
			return d.name(m.Value, "the id of a step")
		}
	}
	return Text{}
}

// kind reads what kind of step it is. A step is of the type that it says; what
// it looks like is only a hint.
func (d decoder) kind(n yamltree.Node) Text {
	kinds := make([]string, len(stepTables))
	for i, s := range stepTables {
		kinds[i] = s.kind
	}
	for _, m := range n.Members {
		if m.Key == "type" {
			t := d.OneOf(m.Value, "the type of a step", kinds...)
			if !slices.Contains(kinds, t.Value) {
				return Text{}
			}
			return t
		}
	}
	if n.Flawed {
		return Text{}
	}
	hint := "write type: " + strings.Join(kinds, ", ") + "; `stoplog explain step-type` says which"
	for _, m := range n.Members {
		if m.Key == "run" || m.Key == "playbook" {
			hint = "write type: " + m.Key
		}
	}
	d.Errorf(n.Span, hint, "the step has no type")
	return Text{}
}

// stepKey reads one key of a step.
func (d decoder) stepKey(s *Step, m yamltree.Member) {
	switch m.Key {
	case "id":
		s.ID = d.name(m.Value, "the id of a step")
	case "handler":
		s.Handler = d.Flag(m.Value, m.Key)
	case "then":
		s.Then = d.action(m.Value, m.Key, DoFail, DoContinue)
	case "when":
		s.When = d.expr(m.Value, m.Key)
	case "needs":
		s.Needs = d.Texts(m.Value, m.Key)
	case "retry":
		s.Retry = d.retry(m.Value)
	case "timeout":
		s.Timeout = d.duration(m, 24*time.Hour)
	case "env":
		s.Env = d.env(m)
	case "effect":
		t := d.OneOf(m.Value, m.Key, string(Read), string(Idempotent), string(Write), string(Irreversible))
		s.Effect = At[Effect]{Value: Effect(t.Value), Span: t.Span}
	case "touches":
		s.Touches = d.touches(m)
	case "scope":
		s.Scope = d.scope(m.Value)
	case "outputs":
		s.Outputs = d.named(m, "output")
	case "on_fail":
		s.OnFail = d.action(m.Value, m.Key, DoFail, DoContinue)
	case "max_iterations":
		s.MaxIterations = d.Integer(m.Value, m.Key, 1, maxIterations)
	case "observer":
		s.Observer = d.observer(m.Value)
	default:
		d.work(s.Work, m)
	}
}

// work reads a key that only one type of step has.
func (d decoder) work(work Work, m yamltree.Member) {
	switch w := work.(type) {
	case *Run:
		if m.Key == "run" {
			*w = d.argv(m)
		}
	case *Claude:
		switch m.Key {
		case "output":
			w.Output = prompt.ReadSchema(d.Reader, m.Value, m.Key)
		case "on_verdict":
			w.OnVerdict = d.verdicts(m)
		default:
			d.ask(&w.Ask, m)
		}
	case *Agent:
		switch m.Key {
		case "profile":
			w.Profile = d.Text(m.Value, m.Key)
		case "output":
			w.Output = prompt.ReadSchema(d.Reader, m.Value, m.Key)
		default:
			d.ask(&w.Ask, m)
		}
	case *Pause:
		d.pause(w, m)
	case *Call:
		switch m.Key {
		case "playbook":
			w.File = d.Text(m.Value, m.Key)
		case "with":
			w.With = d.named(m, "input")
		}
	}
}

func (d decoder) pause(w *Pause, m yamltree.Member) {
	switch m.Key {
	case "reason":
		w.Reason = d.Prose(m.Value, m.Key)
	case "show":
		w.Show = d.named(m, "entry")
	case "preview":
		run := d.argv(m)
		w.Preview = &run
	case "approvers":
		w.Approvers = d.Texts(m.Value, m.Key)
	case "second_person":
		w.SecondPerson = d.Flag(m.Value, m.Key)
	case "expire":
		w.Expire = d.duration(m, 365*24*time.Hour)
	}
}

// ask reads a key of a question to a model.
func (d decoder) ask(a *Ask, m yamltree.Member) {
	switch m.Key {
	case "via":
		t := d.OneOf(m.Value, m.Key, string(CLI), string(API))
		a.Via = At[Via]{Value: Via(t.Value), Span: t.Span}
	case "model":
		a.Model = d.Text(m.Value, m.Key)
	case "prompt_ref":
		a.PromptRef = d.Text(m.Value, m.Key)
	case "with":
		a.With = d.named(m, "input")
	case "max_latency_seconds":
		a.MaxLatency = d.Integer(m.Value, m.Key, 1, maxLatency)
	case "max_tokens_per_run":
		a.MaxTokens = d.Integer(m.Value, m.Key, 1, maxTokens)
	}
}

func (d decoder) observer(n yamltree.Node) *Observer {
	members, flawed := d.members(n, observerTable)
	o := &Observer{Span: n.Span, flawed: flawed}
	for _, m := range members {
		switch m.Key {
		case "scope":
			o.Scope = d.scope(m.Value)
		case "window_bytes":
			o.WindowBytes = d.Integer(m.Value, m.Key, 1<<10, 1<<20)
		case "on_verdict":
			o.OnVerdict = d.verdicts(m)
		case "on_anomaly":
			o.OnAnomaly = d.OneOf(m.Value, m.Key, "file-ticket", "file-warp-ticket")
			if o.OnAnomaly.Value == "file-warp-ticket" {
				o.OnAnomaly.Value = "file-ticket"
			}
		default:
			d.ask(&o.Ask, m)
		}
	}
	return o
}

func (d decoder) scope(n yamltree.Node) *Scope {
	members, flawed := d.members(n, scopeTable)
	s := &Scope{Span: n.Span, flawed: flawed}
	for _, m := range members {
		list := d.Texts(m.Value, m.Key)
		switch m.Key {
		case "can_read":
			s.CanRead = list
		case "can_write":
			s.CanWrite = list
		case "can_run":
			s.CanRun = list
		case "can_reach":
			s.CanReach = list
		}
	}
	return s
}

func (d decoder) retry(n yamltree.Node) *Retry {
	members, flawed := d.members(n, retryTable)
	r := &Retry{Span: n.Span}
	for _, m := range members {
		switch m.Key {
		case "attempts":
			r.Attempts = d.Integer(m.Value, m.Key, 2, maxAttempts)
			flawed = flawed || !r.Attempts.Written()
		case "backoff":
			r.Backoff = d.duration(m, 5*time.Minute)
		}
	}
	if !flawed && !r.Attempts.Written() {
		d.Errorf(n.Span, "write {attempts: 3}", "a retry without a bound")
	}
	return r
}

func (d decoder) touches(m yamltree.Member) (all []At[Touch]) {
	list := d.Texts(m.Value, m.Key)
	if list.Written() && len(m.Value.Items) == 0 {
		d.Errorf(m.Value.Span, "remove it, or write [money], [identity] or both", "touches is an empty list")
	}
	for _, item := range m.Value.Items {
		t := d.OneOf(item, "an item of touches", string(Money), string(Identity))
		if t.Written() {
			all = append(all, At[Touch]{Value: Touch(t.Value), Span: t.Span})
		}
	}
	return all
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// env reads variables. Their values are not repeated in messages.
func (d decoder) env(m yamltree.Member) (all []Var) {
	if !d.Is(m.Value, yamltree.Mapping, m.Key) {
		return nil
	}
	for _, item := range d.Unique(m.Value.Members) {
		if !envName.MatchString(item.Key) {
			d.Errorf(item.Span, "use letters, digits and `_`", "%q is no name of a variable", item.Key)
			continue
		}
		word, ok := d.word(item.Value, "variable "+item.Key)
		if !ok {
			continue
		}
		all = append(all, Var{Name: Text{Value: item.Key, Span: item.Span}, Value: word})
	}
	return all
}
