package playbook

import "slices"

// A CheckDoc is a check: its id, what it is about, and the check itself.
type CheckDoc struct {
	ID      string
	Summary string // one line
	Explain string // why, and what to do
	run     func(*linter)
	always  bool // also where no step can be read
}

// Checks are all of them, in the order of the docs: those of form, of questions
// to models, of scopes, of effects, of order, of references.
var Checks = []*CheckDoc{
	syntaxCheck, secretCheck, duplicateIDCheck,
	modelRequiredCheck, modelFloatingCheck, modelUnknownCheck, promptDiffersCheck,
	promptRequiredCheck, promptVersionCheck, promptFileCheck, promptInputsCheck, corpusCheck,
	scopeRequiredCheck, capsRequiredCheck, outputRequiredCheck, outputSchemaCheck,
	verdictMappedCheck, preferObserverCheck,
	scopeEscapeCheck, safeWriteCheck, interpreterCheck, programCheck, environmentCheck,
	reasonRequiredCheck, pauseRequiredCheck, destructiveCheck, codeCheck, repeatCheck, retryCheck,
	needsCheck, gotoCheck, ceilingCheck, unreachableCheck,
	playbookFileCheck, playbookCycleCheck, playbookInputsCheck,
	expressionCheck,
}

// Lookup gives the check of an id.
func Lookup(id string) (*CheckDoc, bool) {
	i := slices.IndexFunc(Checks, func(c *CheckDoc) bool { return c.ID == id })
	if i < 0 {
		return nil, false
	}
	return Checks[i], true
}

var syntaxCheck = &CheckDoc{
	ID: "syntax", Summary: "the file is no playbook",
	Explain: `A playbook is strict YAML: one document, no anchors, aliases, merge keys or tags, each key once and in its place, numbers as they are written. A key that is misspelt or stands in the wrong mapping is an error, because a key that is ignored is a rule that does not hold.`,
}
