package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/approval"
	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/journal"
)

// decisionFlags are those of approve, deny and answer.
type decisionFlags struct {
	journalFlags
	ID     string `arg:"" help:"The question: its id, or the beginning of one."`
	Digest string `placeholder:"HEX" help:"What was shown, by the digest that stood beside it (16 digits or more): decides without asking."`
	By     string `placeholder:"NAME" help:"Who decides; without it, the user of this process."`
	JSON   bool   `help:"Give the question, as it was decided, as JSON."`
}

type approveCommand struct {
	decisionFlags
	Reason string `help:"Why."`
}

type denyCommand struct {
	decisionFlags
	Reason string `help:"Why; the model is told."`
}

type answerCommand struct {
	decisionFlags
	Text string `arg:"" help:"The answer."`
}

const decisionHelp = `A decision counts for exactly what was shown, by its digest. Without --digest the question is shown, and asked here, if this is a terminal.

The run goes on at once if a server has the journal in hand, and otherwise with ` + "`stoplog runs resume`" + `. A question is decided once; one whose time has passed is denied.

` + journalHelp + `

`

func (*approveCommand) Help() string {
	return `Says yes to what a run asks, and lets it go on.

` + decisionHelp + `Examples:

    stoplog approve apr_01kc
    stoplog approve apr_01kc --digest 5b0e3f9a1c2d4e5f --by ann

Exit codes: 0 approved, 1 it could not be (already decided, expired, the run has ended), 2 usage, 4 nobody is there to be asked.`
}

func (*denyCommand) Help() string {
	return `Says no to what a run asks. A tool call that is denied is not run, and the model is told; where the run itself is in question, a no ends it.

` + decisionHelp + `Examples:

    stoplog deny apr_01kc --reason "not on a Friday"

Exit codes: 0 denied, 1 it could not be (already decided, expired, the run has ended), 2 usage, 4 nobody is there to be asked.`
}

func (*answerCommand) Help() string {
	return `Answers a question that a model has asked.

` + decisionHelp + `Examples:

    stoplog answer apr_01kc "a table for four" --digest 5b0e3f9a1c2d4e5f

Exit codes: 0 answered, 1 it could not be (already answered, expired, the run has ended), 2 usage, 4 nobody is there to be asked.`
}

func (c *approveCommand) Run(w *world) error {
	return c.decide(w, journal.QuestionApproved, c.Reason)
}
func (c *denyCommand) Run(w *world) error {
	return c.decide(w, journal.QuestionDenied, c.Reason)
}
func (c *answerCommand) Run(w *world) error {
	return c.decide(w, journal.QuestionAnswered, c.Text)
}

// decide shows a question, sees that it is the one that was meant, and decides it.
func (c *decisionFlags) decide(w *world, state journal.QuestionState, text string) error {
	ctx := context.Background()
	by, err := person(c.By, w)
	if err != nil {
		return err
	}
	store, err := c.open(ctx, w)
	if err != nil {
		return err
	}
	defer store.Close()
	partial, err := journal.Partial(journal.ApprovalPrefix, c.ID)
	if err != nil {
		return failf(exitUsage, "%w", err)
	}
	id, err := store.Find(ctx, journal.DefaultTenant, partial)
	if err != nil {
		return refused(fmt.Errorf("question %s: %w", c.ID, err))
	}
	q, err := store.Question(ctx, journal.DefaultTenant, id)
	if err != nil {
		return err
	}
	if err := fits(q, state); err != nil {
		return err
	}
	if err := c.consent(ctx, w, store, q, state); err != nil {
		return err
	}
	decided, err := record(ctx, w, store, q, approval.Decision{ID: q.ID, Digest: q.Digest, State: state, By: by, Text: text})
	if err != nil {
		return refused(err)
	}
	if c.JSON {
		return newEncoder(w.stdout).Encode(decided)
	}
	return nil
}

// fits refuses a yes where words are asked for, and words where a yes is.
func fits(q journal.Question, state journal.QuestionState) error {
	switch asksWords := q.About == "reply"; {
	case asksWords && state != journal.QuestionAnswered:
		return failf(exitUsage, "%s asks for words", q.ID).hint("answer with `stoplog answer %s TEXT`", q.ID)
	case !asksWords && state == journal.QuestionAnswered:
		return failf(exitUsage, "%s asks for a yes or a no", q.ID).hint("see `stoplog approve --help`")
	}
	return nil
}

// record takes the decision to the server of the journal, or into it.
func record(ctx context.Context, w *world, store journal.Store, q journal.Question, d approval.Decision) (api.Approval, error) {
	path := ""
	if s, ok := store.(interface{ Path() string }); ok {
		path = s.Path()
	}
	if server, ok := dialServer(ctx, path); ok {
		defer server.hangUp()
		return server.Decide(ctx, string(d.ID), d.State, api.Decision{Digest: hex.EncodeToString(d.Digest[:]), By: d.By, Text: d.Text})
	}
	decided, err := approval.Decide(ctx, store, q.Tenant, d, nil)
	if err != nil {
		return api.Approval{}, err
	}
	if run, err := store.Run(ctx, q.Ref); err != nil || !run.Status.Terminal() {
		nobody(w, q.Run)
	}
	return api.ApprovalOf(decided), nil
}

// minDigest is how much of a digest says which it is.
const minDigest = 16

// consent sees that who decides has seen what is decided.
func (c *decisionFlags) consent(ctx context.Context, w *world, store journal.Reader, q journal.Question, state journal.QuestionState) error {
	digest := hex.EncodeToString(q.Digest[:])
	if c.Digest != "" {
		if len(c.Digest) < minDigest {
			return failf(exitUsage, "--digest %s is too short: want %d digits or more", c.Digest, minDigest)
		}
		if !strings.HasPrefix(digest, strings.ToLower(c.Digest)) {
			return failf(exitError, "decide %s: the decision is not about what was asked: look at it again", q.ID).hint("see `stoplog approve %s`", q.ID)
		}
		return nil
	}
	showQuestion(w, api.ApprovalOf(q))
	showWithheld(ctx, w, store, q)
	verb := map[journal.QuestionState]string{
		journal.QuestionApproved: "approve", journal.QuestionDenied: "deny", journal.QuestionAnswered: "answer",
	}[state]
	if q.State != journal.QuestionPending {
		return &journal.DecidedError{Question: q}
	}
	if !isTerminal(w.stdin) {
		return failf(exitWaiting, "%s was not decided: there is no terminal to ask at", q.ID).
			hint("decide what is shown above with `stoplog %s %s --digest %s`", verb, q.ID, digest[:minDigest])
	}
	line, err := askLine(w, fmt.Sprintf("%s it? [y/N] ", verb))
	if err != nil {
		return err
	}
	if !yes(line) {
		return failf(exitWaiting, "%s was not decided", q.ID)
	}
	return nil
}

// showQuestion shows a question with all that a decision binds to.
func showQuestion(w *world, a api.Approval) {
	w.voice.sayf("%s, of run %s, asks about %s", a.ID, a.Run, a.What)
	var shown bytes.Buffer
	if json.Indent(&shown, a.Shown, "", "  ") != nil {
		shown.Reset()
		shown.WriteString("what was shown has been purged")
	}
	for line := range strings.Lines(shown.String()) {
		fmt.Fprintf(w.voice.w, "    %s\n", diag.Line(strings.TrimRight(line, "\n")))
	}
	w.voice.sayf("digest %s", a.Digest)
	if !a.Expires.IsZero() {
		w.voice.sayf("without a decision it is denied at %s", a.Expires.Format(time.RFC3339))
	}
}

// mostWithheld is how much of a withheld answer a terminal shows, in bytes.
const mostWithheld = 8 << 10

// showWithheld shows the answer that a question is about, as its caller would get it.
func showWithheld(ctx context.Context, w *world, store journal.Reader, q journal.Question) {
	if q.State != journal.QuestionPending {
		return
	}
	a, err := approval.Asked(ctx, store, q)
	if errors.Is(err, journal.ErrNotFound) {
		return
	}
	if err != nil {
		w.voice.sayf("the answer cannot be shown: %v", err)
		return
	}
	w.voice.sayf("the answer, as it leaves once it is approved (%d bytes):", len(a.Body))
	for line := range strings.Lines(string(a.Body[:min(len(a.Body), mostWithheld)])) {
		fmt.Fprintf(w.voice.w, "    %s\n", diag.Line(strings.TrimRight(line, "\n")))
	}
	if len(a.Body) > mostWithheld {
		w.voice.sayf("and %d bytes more: GET /v1/approvals/%s/withheld", len(a.Body)-mostWithheld, q.ID)
	}
	if a.Denied != "" {
		w.voice.sayf("it cannot be approved: %s denies in it", a.Denied)
	}
}

func yes(line string) bool {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}
