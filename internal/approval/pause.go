package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/stoplog/stoplog/internal/journal"
)

// Pause is whether a playbook's run goes on: behind a step of type pause, or behind
// one whose verdict, or a signal, asks.
type Pause struct {
	Run      journal.ID
	Playbook string
	Step     string
	Visit    int // which of the step's turns in the run it is, from 1
	Reason   string
	Inputs   json.RawMessage // of the playbook, an object
	Shown    json.RawMessage // what the step shows, an object; nil: nothing
	Output   json.RawMessage // of the step, where its verdict asks; nil: none
	Preview  string          // what a command said of what would be done
	// Approvers are those who may approve; empty: whoever may approve anything.
	Approvers []string

	Workdir       string
	ProfileDigest string
	BookDigest    string // of the playbook and all that it reads
}

func (p Pause) String() string { return fmt.Sprintf("step %s of playbook %s", p.Step, p.Playbook) }

func (p Pause) members() any {
	return struct {
		V             int             `json:"v"`
		Run           journal.ID      `json:"run"`
		Playbook      string          `json:"playbook"`
		Step          string          `json:"step"`
		Visit         int             `json:"visit"`
		Reason        string          `json:"reason"`
		Inputs        json.RawMessage `json:"inputs,omitempty"`
		Shown         json.RawMessage `json:"shown,omitempty"`
		Output        json.RawMessage `json:"output,omitempty"`
		Preview       string          `json:"preview,omitempty"`
		Approvers     []string        `json:"approvers,omitempty"`
		Workdir       string          `json:"workdir"`
		ProfileDigest string          `json:"profile_digest"`
		BookDigest    string          `json:"book_digest"`
	}{
		version, p.Run, p.Playbook, p.Step, p.Visit, p.Reason, p.Inputs, p.Shown, p.Output, p.Preview, p.Approvers,
		p.Workdir, p.ProfileDigest, p.BookDigest,
	}
}

// ErrNotApprover: only those whom the question names may say yes.
var ErrNotApprover = errors.New("only those whom it names may approve it")

// mayApprove says what speaks against a person's yes; nil if nothing does. Who may is
// part of what is shown, and so of what the digest covers.
func mayApprove(q journal.Question, d Decision) error {
	if d.State != journal.QuestionApproved {
		return nil // whoever may decide at all may say no
	}
	var shown struct {
		Approvers []string `json:"approvers"`
	}
	if err := json.Unmarshal(q.Shown, &shown); err != nil {
		return fmt.Errorf("read who may approve it: %w", err)
	}
	if len(shown.Approvers) > 0 && !slices.Contains(shown.Approvers, d.By) {
		return fmt.Errorf("%w: %q is not one of %q", ErrNotApprover, d.By, shown.Approvers)
	}
	return nil
}
