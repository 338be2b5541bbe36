package playbook

import (
	"slices"

	"github.com/stoplog/stoplog/internal/yamltree"
)

// A key is what a mapping may hold, once for the parser, the schema for editors
// and the reference in the docs.
type key struct {
	name string
	form form
	doc  string
}

// A table is the keys of one kind of mapping.
type table struct {
	what, path string
	keys       []key
	shape      *yamltree.Shape
}

func newTable(what, path string, groups ...[]key) *table {
	t := &table{what: what, path: path, keys: slices.Concat(groups...)}
	t.shape = &yamltree.Shape{What: what, Path: path}
	for _, k := range t.keys {
		t.shape.Keys = append(t.shape.Keys, k.name)
	}
	return t
}

var topTable = newTable("the playbook", "the top level", []key{
	{"playbook", text, "the playbook's name"},
	{"description", text, "what it is for"},
	{"status", oneOf("draft", "active"), "active refuses floating models and unversioned prompts; default draft"},
	{"inputs", mapOf(formInput), "what whoever runs it gives: NAME: TYPE, or NAME: {type, default, enum, description}"},
	{"outputs", mapOf(expr), "what a playbook that calls this one gets of it: NAME: EXPRESSION"},
	{"prompt_roots", texts, "folders with prompts, from the root; default prompts and library/prompts"},
	{"max_iterations", integer(1, maxIterations), "how often a goto may lead back to a step that does not say so itself"},
	{"steps", formSteps, "what is done, in order"},
})

// common are the keys of every step; those that say what it does come between
// its type and the rest.
var (
	stepHead = []key{
		{"id", text, "the step's name in this playbook"},
		{"type", oneOf("run", "claude", "agent", "pause", "playbook"), "what kind of step it is"},
		{"handler", boolean, "true: runs only when a goto leads to it"},
		{"then", formEnd, "what follows a handler: fail (default), continue, or {goto: ID}"},
		{"when", expr, "runs if this is true; else the step, and what follows it, is skipped"},
		{"needs", texts, "the steps that this one follows; default the one before it"},
	}
	stepTail = []key{
		{"on_fail", formEnd, "fail (default), continue, or {goto: ID}"},
		{"max_iterations", integer(1, maxIterations), "how often a goto may lead back to this step"},
		{"observer", formObserver, "a model that watches the step"},
	}
	stepLimits = []key{
		{"retry", formRetry, "try again when it fails: {attempts, backoff}"},
		{"timeout", duration, "how long it may take, as in 90s, 30m"},
	}
	stepEffects = []key{
		{"effect", oneOf("read", "idempotent", "write", "irreversible"), "what it does to the world; default write"},
		{"touches", listOf(oneOf("money", "identity")), "what only a person decides about"},
	}
	stepProcess = []key{
		{"env", mapOf(formWord), "its environment: NAME: VALUE, or NAME: {expr: EXPRESSION}"},
		{"scope", formScope, "what it may read, write, run and reach"},
	}
	stepOutputs = []key{{"outputs", mapOf(expr), "what later steps read: NAME: EXPRESSION"}}

	askKeys = []key{
		{"model", text, "NAME@DATE, as in claude-sonnet-4-5@20250929"},
		{"prompt_ref", text, "NAME.md@vN, below a prompt root"},
		{"with", mapOf(expr), "the prompt's inputs: NAME: EXPRESSION"},
		{"max_latency_seconds", integer(1, maxLatency), "how long it may take; then it is killed: failed_timeout"},
		{"max_tokens_per_run", integer(1, maxTokens), "how many tokens it may use; then it is killed: failed_budget_exceeded"},
	}
	viaKey = key{"via", oneOf("cli", "api"), "cli (default): claude -p in the sandbox; api: the governed loop without tools"}
)

// The kinds of step, by type, in the order of the docs.
var stepTables = []struct {
	kind  string
	table *table
}{
	{"run", newTable("a run step", "a run step", stepHead, []key{
		{"run", formArgv, "a program and its arguments, as a line or a list; no shell reads it"},
	}, stepProcess, stepEffects, stepLimits, stepOutputs, stepTail)},
	{"claude", newTable("a claude step", "a claude step", stepHead, []key{viaKey}, askKeys, []key{
		{"output", formSchema, "a JSON Schema with an enum property verdict"},
		{"on_verdict", mapOf(formAction), "what each value of verdict leads to"},
	}, stepProcess, stepEffects, stepLimits, stepOutputs, stepTail)},
	{"agent", newTable("an agent step", "an agent step", stepHead, []key{
		{"profile", text, "a profile of stoplog.yaml; default default"},
	}, askKeys, []key{
		{"output", formSchema, "a JSON Schema that its answer must fit"},
	}, stepProcess, stepEffects, stepLimits, stepOutputs, stepTail)},
	{"pause", newTable("a pause step", "a pause step", stepHead, []key{
		{"reason", text, "what the person decides about"},
		{"show", mapOf(expr), "what they see: NAME: EXPRESSION"},
		{"preview", formArgv, "a command whose output they see; it runs in the step's scope"},
		{"approvers", texts, "who may decide; default whoever may approve"},
		{"second_person", boolean, "true: not the one who started the run"},
		{"expire", duration, "how long it waits; then it is denied; default 24h"},
	}, stepProcess, stepTail)},
	{"playbook", newTable("a playbook step", "a playbook step", stepHead, []key{
		{"playbook", text, "the file to run, from this file's folder"},
		{"with", mapOf(expr), "its inputs: NAME: EXPRESSION"},
	}, stepEffects, stepLimits, stepTail)},
}

var (
	observerTable = newTable("an observer", "observer", []key{viaKey}, askKeys, []key{
		{"scope", formScope, "what the observer itself may read, write, run and reach"},
		{"window_bytes", integer(1<<10, 1<<20), "how much of the step's events it is shown at once; default 65536"},
		{"on_verdict", mapOf(formAction), "what each verdict of its prompt leads to, and observer_failed"},
		{"on_anomaly", oneOf("file-ticket", "file-warp-ticket"), "file a ticket when it sees an anomaly"},
	})
	scopeTable = newTable("a scope", "scope", []key{
		{"can_read", texts, "files, as patterns from the root"},
		{"can_write", texts, "files, as patterns from the root"},
		{"can_run", texts, "programs"},
		{"can_reach", texts, "hosts: NAME:PORT"},
	})
	retryTable = newTable("a retry", "retry", []key{
		{"attempts", integer(2, maxAttempts), "how often in all, the first included"},
		{"backoff", duration, "before the second, doubled before each further one, to 5m; default 1s"},
	})
	inputTable = newTable("an input", "inputs.NAME", []key{
		{"type", oneOf("string", "integer", "number", "boolean"), "the input's type"},
		{"default", formLiteral, "its value where none is given"},
		{"enum", texts, "what a string may be"},
		{"description", text, "what it is for"},
	})
	gotoTable = newTable("an action", "an action", []key{{"goto", text, "the step to go to"}})
	exprTable = newTable("a value", "a value", []key{{"expr", expr, "an expression"}})
)

// Bounds of what a file may say.
const (
	maxIterations = 100
	maxAttempts   = 10
	maxLatency    = 24 * 60 * 60
	maxTokens     = 100_000_000
)

// tables are those in which a misplaced key is looked for.
var tables = func() (all yamltree.Shapes) {
	all = append(all, topTable.shape)
	for _, s := range stepTables {
		all = append(all, s.table.shape)
	}
	for _, t := range []*table{observerTable, scopeTable, retryTable, inputTable, gotoTable, exprTable} {
		all = append(all, t.shape)
	}
	return all
}()

// stepTable gives the table of a type of step.
func stepTable(kind string) *table {
	for _, s := range stepTables {
		if s.kind == kind {
			return s.table
		}
	}
	return nil
}
