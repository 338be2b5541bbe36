// Package disclosure finds a system prompt in what a model says.
//
//	the request's prompt ─► words, and where each stands ─┐
//	                                                      ▼
//	an answer ─► words ─► runs of words that the prompt has in that order ─► findings
//
// A prompt is disclosed where [LeastWords] or more of its words stand in an answer
// one after the other, of [LeastLetters] letters or more: whatever the case, the
// punctuation and the white space between them, and what is invisible inside
// them. A finding is as long as the run. A canary is a word that the prompt alone
// has; it is found by itself.
//
// The prompt is each request's own: [WithPrompt] puts it into the context that a
// guard's channels are opened with. Without one there is nothing to find.
//
// # Laws
//
// Chunk invariance and least hold-back, as guard has them: a text waits from where
// a run of the prompt's words began that may still become long enough, or a word
// that may begin one. A run that goes on for [HoldLimit] bytes is reported without
// its end, and again with it.
//
// It finds repetition, not meaning: a prompt that is translated, paraphrased or
// spelled out is not found.
package disclosure

import (
	"container/list"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"sync"

	"github.com/stoplog/stoplog/guard"
)

// What makes a run of words a finding. Eight words in the order of a prompt are
// seldom chance; in scripts without spaces, where each letter is a word here,
// letters count.
const (
	LeastWords   = 8
	LeastLetters = 24
)

// HoldLimit is how many bytes of a run are held before it is reported.
const HoldLimit = 512

// The rules.
const (
	RuleOverlap = "disclosure-overlap"
	RuleCanary  = "disclosure-canary"
)

// Options of a guard. The zero value is useful in tests only: it has no name.
type Options struct {
	Name string
	// Key keys the fingerprints of findings; without one they are empty.
	Key []byte
	// Verdict is that of the findings.
	Verdict guard.Verdict
	// Prompt is what must not be told where the context says nothing.
	Prompt string
}

// Guard finds the prompt of a request in its answer. It is safe for use by several
// goroutines.
type Guard struct {
	opt Options

	mu      sync.Mutex
	prompts map[[sha256.Size]byte]*list.Element // of *prompt, by the prompt's digest
	recent  list.List
}

// mostPrompts is how many prompts are kept ready: the same few come again with
// each request.
const mostPrompts = 16

// New returns a guard.
func New(opt Options) *Guard {
	return &Guard{opt: opt, prompts: map[[sha256.Size]byte]*list.Element{}}
}

// Name implements [guard.Guard].
func (g *Guard) Name() string { return g.opt.Name }

// Strictest is the verdict of every finding.
func (g *Guard) Strictest() guard.Verdict { return g.opt.Verdict }

type promptKey struct{}

// WithPrompt returns a context in which channels are opened that must not tell the
// prompt.
func WithPrompt(ctx context.Context, prompt string) context.Context {
	return context.WithValue(ctx, promptKey{}, prompt)
}

// Open implements [guard.Guard].
func (g *Guard) Open(ctx context.Context, ch guard.Channel) guard.Screen {
	text, ok := ctx.Value(promptKey{}).(string)
	if !ok {
		text = g.opt.Prompt
	}
	p := g.prompt(text)
	if p == nil || ch.Side == guard.Request {
		return &nothing{}
	}
	s := &screen{guard: g, prompt: p}
	if len(g.opt.Key) > 0 {
		s.print = hmac.New(sha256.New, g.opt.Key)
	}
	return s
}

// prompt makes a text ready, or finds that it is; nil if there is nothing to find.
func (g *Guard) prompt(text string) *prompt {
	if text == "" {
		return nil
	}
	digest := sha256.Sum256([]byte(text))
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.prompts[digest]; e != nil {
		g.recent.MoveToFront(e)
		return e.Value.(*prompt)
	}
	p := newPrompt(text)
	p.digest = digest
	g.prompts[digest] = g.recent.PushFront(p)
	if g.recent.Len() > mostPrompts {
		last := g.recent.Remove(g.recent.Back()).(*prompt)
		delete(g.prompts, last.digest)
	}
	return p
}

// nothing is the screen of a channel in which there is nothing to find.
type nothing struct{ read int64 }

func (n *nothing) Write(p []byte) (guard.Progress, error) {
	n.read += int64(len(p))
	return guard.Progress{Settled: n.read}, nil
}

func (n *nothing) Close() (guard.Progress, error) { return guard.Progress{Settled: n.read}, nil }

// Canary makes a word to put into a prompt, the same for the same key and name,
// and not to be guessed without the key. Whoever finds it knows that the prompt
// was told.
func Canary(key []byte, name string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("disclosure canary\x00" + name))
	return canaryPrefix + hex.EncodeToString(mac.Sum(nil)[:8])
}

const canaryPrefix = "slcanary"

// canaryForm is how a prompt's canaries are known: any word of that form.
var canaryForm = regexp.MustCompile(`^` + canaryPrefix + `[0-9a-f]{16}$`)
