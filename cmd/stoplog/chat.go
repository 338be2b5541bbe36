package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/api"
	"github.com/stoplog/stoplog/internal/chat"
	"github.com/stoplog/stoplog/internal/journal"
	loop "github.com/stoplog/stoplog/internal/run"
)

type chatCommand struct {
	journalFlags
	Config  string `placeholder:"FILE" help:"The configuration, in place of the one that would be found."`
	Profile string `placeholder:"NAME" help:"The profile that governs; without it, the default one."`
	Session string `placeholder:"ID" help:"The conversation to go on with."`
	By      string `placeholder:"NAME" help:"Who speaks; without it, the user of this process."`
	Message string `arg:"" optional:"" help:"What to say; without it, it is asked for, or read from stdin."`
	JSON    bool   `help:"Give the events as JSON, one a line."`
}

func (*chatCommand) Help() string {
	return `Talks to an agent. What it says is on stdout, as it comes; what it does, and what is decided of that, is talk. A question that it puts to a person is asked here, if this is a terminal, with exactly what the decision binds to.

At a terminal without a message it is a conversation: a line is a message, an empty line or the end of input ends it. In a pipe, stdin is one message, and a run that waits for a person ends the command with exit code 4; it goes on with stoplog approve or deny, and stoplog runs resume.

The server that has the journal in hand is used; if there is none, one is started for as long as this lasts. SIGINT ends the run, a second one the command.

` + journalHelp + `

Examples:

    stoplog chat
    stoplog chat "What is in this folder?"
    git diff | stoplog chat --profile review --json | jq -r 'select(.event == "done").data.message'

Exit codes: 0 the run completed, 1 error, or it failed or was cancelled, 2 usage, 3 blocked by policy, 4 it waits for a person, 5 out of budget or time.`
}

func (c *chatCommand) Run(w *world) error {
	ctx := context.Background()
	by, err := person(c.By, w)
	if err != nil {
		return err
	}
	server, hangUp, err := reach(ctx, w, c.journalFlags, c.Config)
	if err != nil {
		return err
	}
	defer hangUp()
	t := &talk{
		w: w, server: server, by: by, json: c.JSON, ask: isTerminal(w.stdin),
		session: c.Session, profile: c.Profile,
		narrator: narrator{w: w, tame: isTerminal(w.stdout)},
	}
	switch {
	case c.Message != "":
		return t.once(ctx, c.Message)
	case t.ask:
		return t.converse(ctx)
	}
	text, err := io.ReadAll(io.LimitReader(w.stdin, maxMessage+1))
	if err != nil {
		return failf(exitError, "read the message: %w", err)
	}
	if len(text) > maxMessage {
		return failf(exitUsage, "the message is larger than %d bytes", maxMessage)
	}
	return t.once(ctx, string(text))
}

// maxMessage is how much may be said at once; quoting makes a body of it that is
// somewhat larger, which the server has the last word on.
const maxMessage = 1 << 20

// talk is a conversation with an agent through a server.
type talk struct {
	w        *world
	server   *api.Client
	by       string
	json     bool
	ask      bool // a person is there to be asked
	session  string
	profile  string
	narrator narrator
}

// once says one thing.
func (t *talk) once(ctx context.Context, message string) error {
	d, err := t.say(ctx, message)
	if err != nil {
		return refused(err)
	}
	return endOf(t.w, d)
}

// converse says what is typed, line by line. A run that did not end well does not
// end the conversation; one that waits does, since nothing can be said before it
// has gone on.
func (t *talk) converse(ctx context.Context) error {
	for {
		line, err := askLine(t.w, "> ")
		if errors.Is(err, errNobody) || err == nil && strings.TrimSpace(line) == "" {
			return nil
		}
		if err != nil {
			return err
		}
		d, err := t.say(ctx, line)
		if err != nil {
			return refused(err)
		}
		if d.Waits() {
			return endOf(t.w, d)
		}
		if !d.Success {
			t.w.voice.sayf("run %s is %s (%s)", d.Run, d.Status, d.Reason)
		}
	}
}

// say has a message answered.
func (t *talk) say(ctx context.Context, message string) (chat.Done, error) {
	d, at, err := t.stream(ctx, api.ChatRequest{Session: t.session, Profile: t.profile, Message: message, By: t.by}, chat.Position{})
	if err != nil {
		return d, err
	}
	t.session = d.Session
	return t.see(ctx, d, at)
}

// goOn goes on with a run behind a place.
func (t *talk) goOn(ctx context.Context, id string, at chat.Position) (chat.Done, error) {
	d, at, err := t.stream(ctx, api.ChatRequest{Resume: id}, at)
	if err != nil {
		return d, err
	}
	return t.see(ctx, d, at)
}

// see asks what a run waits for, if somebody is there to be asked, until it ends
// or is left waiting.
func (t *talk) see(ctx context.Context, d chat.Done, at chat.Position) (chat.Done, error) {
	if !d.Waits() || !t.ask || t.json {
		return d, nil
	}
	settled, err := t.settle(ctx, d)
	if err != nil || !settled {
		return d, err
	}
	return t.goOn(ctx, d.Run, at)
}

// A stream that was cut off is taken up again, so often and so soon.
const (
	reconnects  = 5
	reconnectIn = 500 * time.Millisecond
)

// stream shows what comes until there is a Done.
func (t *talk) stream(ctx context.Context, body api.ChatRequest, after chat.Position) (d chat.Done, at chat.Position, err error) {
	ctx, in := t.interruptible(ctx)
	defer in.stop()
	if body.Resume != "" {
		in.run(body.Resume)
	}
	at = after
	for try := 0; ; try++ {
		for item, err := range t.server.Chat(ctx, body, at) {
			if errors.Is(err, api.ErrCut) && in.id != "" && try < reconnects {
				break
			}
			if err != nil {
				return d, at, err
			}
			if begun, ok := item.Event.(chat.Run); ok {
				in.run(begun.ID)
			}
			if !item.At.IsZero() {
				at = item.At
			}
			if err := t.show(item); err != nil {
				return d, at, err
			}
			if d, ok := item.Event.(chat.Done); ok {
				return d, at, nil
			}
		}
		t.w.voice.sayf("the stream was cut off: coming back to %s", in.id)
		select {
		case <-time.After(reconnectIn):
		case <-ctx.Done():
			return d, at, ctx.Err()
		}
		body = api.ChatRequest{Resume: in.id}
	}
}

func (t *talk) show(item chat.Item) error {
	if t.json {
		return writeItem(newEncoder(t.w.stdout), item)
	}
	return t.narrator.show(item.Event)
}

// interrupts turns a first SIGINT into the end of the run, and a second one into
// the end of waiting for it.
type interrupts struct {
	id   string
	ids  chan string
	done <-chan struct{}
	stop func()
}

func (in *interrupts) run(id string) {
	in.id = id
	select {
	case in.ids <- id:
	case <-in.done: // the wait has ended
	}
}

func (t *talk) interruptible(ctx context.Context) (context.Context, *interrupts) {
	ctx, cancel := context.WithCancel(ctx)
	signals, ids, over := make(chan os.Signal, 2), make(chan string), make(chan struct{})
	signal.Notify(signals, os.Interrupt)
	var failed error // to cancel; the goroutine's until it is over
	go func() {
		defer close(over)
		id, wanted := "", false
		for {
			select {
			case id = <-ids:
			case <-signals:
				if wanted {
					cancel()
					continue
				}
				wanted = true
			case <-ctx.Done():
				return
			}
			if wanted && id != "" {
				_, failed = t.server.Cancel(ctx, id, t.by)
			}
		}
	}()
	return ctx, &interrupts{ids: ids, done: ctx.Done(), stop: func() {
		signal.Stop(signals)
		cancel()
		if <-over; failed != nil {
			t.w.voice.sayf("%v", failed)
		}
	}}
}

// settle asks a person what the run waits for. It reports whether anything was
// settled.
func (t *talk) settle(ctx context.Context, d chat.Done) (settled bool, err error) {
	for _, a := range d.Approvals {
		ok, err := t.approve(ctx, a)
		if err != nil {
			return settled, err
		}
		settled = settled || ok
	}
	if q := d.Question; q != nil {
		line, err := askLine(t.w, "answer (empty: leave it): ")
		if err != nil && !errors.Is(err, errNobody) {
			return settled, err
		}
		if strings.TrimSpace(line) != "" {
			if _, err := t.server.Decide(ctx, q.ID, journal.QuestionAnswered, api.Decision{Digest: q.Digest, By: t.by, Text: line}); err != nil {
				return settled, err
			}
			settled = true
		}
	}
	for _, call := range d.InDoubt {
		ok, err := t.resolve(ctx, d.Run, call)
		if err != nil {
			return settled, err
		}
		settled = settled || ok
	}
	return settled, nil
}

// approve shows a question and asks for a yes or a no. What is shown is what the
// digest covers, and that is checked here too.
func (t *talk) approve(ctx context.Context, asked chat.Approval) (bool, error) {
	a, err := t.server.Approval(ctx, asked.ID)
	if err != nil {
		return false, err
	}
	if sum := sha256.Sum256(a.Shown); hex.EncodeToString(sum[:]) != asked.Digest || a.Digest != asked.Digest {
		return false, fmt.Errorf("%s: what the server shows is not what the run asks about", a.ID)
	}
	showQuestion(t.w, a)
	line, err := askLine(t.w, "approve it? [y]es, [n]o, or nothing to leave it: ")
	if err != nil && !errors.Is(err, errNobody) {
		return false, err
	}
	answer, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
	state := journal.QuestionApproved
	switch strings.ToLower(answer) {
	case "y", "yes":
	case "n", "no":
		state = journal.QuestionDenied
	default:
		return false, nil
	}
	_, err = t.server.Decide(ctx, asked.ID, state, api.Decision{Digest: asked.Digest, By: t.by, Text: reason})
	if e := (*api.Error)(nil); errors.As(err, &e) && e.Code == api.Decided {
		t.w.voice.sayf("%v", err) // somebody was first: the run knows what they said
		return true, nil
	}
	return err == nil, err
}

// resolve asks what became of a call in doubt.
func (t *talk) resolve(ctx context.Context, id string, call chat.Tool) (bool, error) {
	t.w.voice.sayf("%s", card(call))
	t.w.voice.sayf("it was started, and its end was lost: it may have taken effect")
	line, err := askLine(t.w, "[r]etry it, [d]one RESULT, [a]bandon the run, or nothing to leave it: ")
	if err != nil && !errors.Is(err, errNobody) {
		return false, err
	}
	answer, text, _ := strings.Cut(strings.TrimSpace(line), " ")
	choice, ok := map[string]loop.Choice{
		"r": loop.Retry, "retry": loop.Retry, "d": loop.TakeAsDone, "done": loop.TakeAsDone, "a": loop.Abandon, "abandon": loop.Abandon,
	}[strings.ToLower(answer)]
	if !ok {
		return false, nil
	}
	body := api.ResolveRequest{Choice: choice.String(), Step: call.Step, Call: call.Call, By: t.by}
	if choice == loop.TakeAsDone {
		body.Text = text
	}
	_, err = t.server.Resolve(ctx, id, body)
	return err == nil, err
}

// endOf gives the end of a stream its exit code. What policy stopped, and what
// waits, is no error: there is no more to say than what was shown, and how to go
// on.
func endOf(w *world, d chat.Done) error {
	f := failf(exitError, "run %s is %s (%s)", d.Run, d.Status, d.Reason)
	switch {
	case d.Success:
		return nil
	case d.Waits():
		f.code = exitWaiting
		return waiting(f, d)
	case d.Status == chat.StatusBlocked:
		f.code = exitBlocked
	case d.Reason == string(loop.ReasonTimeout), d.Reason == string(loop.ReasonBudgetExceeded):
		f.code = exitSpent
	}
	return f.hint("see `stoplog why %s`", d.Run)
}

// waiting says how to go on.
func waiting(f *failure, d chat.Done) error {
	for _, a := range d.Approvals {
		f.hint("decide with `stoplog approve %s` or `stoplog deny %s`", a.ID, a.ID)
	}
	if d.Question != nil {
		f.hint("answer with `stoplog answer %s TEXT`", d.Question.ID)
	}
	if len(d.InDoubt) > 0 {
		return f.hint("say what became of it with `stoplog runs resume %s --retry`, `--done TEXT` or `--abandon`", d.Run)
	}
	return f.hint("then go on with `stoplog runs resume %s`", d.Run)
}
