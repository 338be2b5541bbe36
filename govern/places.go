package govern

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/stoplog/stoplog/internal/wire"
)

// Values keeps what the placeholders of conversations stand for, so that a value
// has the same one in every request of a conversation, whichever process it comes
// to. It is safe for use by several goroutines.
type Values interface {
	// Values returns what there is of a conversation: values by placeholder.
	Values(ctx context.Context, conversation string) (map[string]string, error)
	// Add adds placeholders to a conversation. It fails with ErrTaken, and adds
	// none, if one of them is there already.
	Add(ctx context.Context, conversation string, values map[string]string) error
}

// ErrTaken: a placeholder stands for something already. Somebody else has added to
// the conversation since it was read.
var ErrTaken = errors.New("the placeholder is taken")

// headerSession names the conversation that a request belongs to.
const headerSession = "Stoplog-Session"

// places are the placeholders of one request. A value that a reversible guard finds
// gets one; the answer's are put back.
//
// A conversation is a caller's own. It is named by the header Stoplog-Session, or
// known by what does not change while it grows: its first message. Two people who
// share a key and begin alike would share a conversation that is known so; nobody
// gets a value out of it that was not in their own request, so what is put back
// there is what this request had. Only of a conversation that the caller names all
// values are.
type places struct {
	ctx     context.Context
	profile *profile
	values  Values
	id      func() string // of the conversation
	named   bool
	body    []byte

	loaded bool
	err    error
	known  map[string]string // values by placeholder
	names  map[string]string // placeholders by value
	counts map[string]int    // how many of a class
	added  map[string]string
	used   map[string]string
	lower  []byte // the body, to see which names it has of itself
}

// places returns the placeholders of a request, nil if the profile wants none.
func (c *call) newPlaces() *places {
	if len(c.profile.Reversible) == 0 {
		return nil
	}
	p := &places{
		ctx: c.ctx, profile: c.profile, values: c.t.values, body: c.body,
		known: map[string]string{}, names: map[string]string{}, counts: map[string]int{},
		added: map[string]string{}, used: map[string]string{},
	}
	name := c.req.Header.Get(headerSession)
	p.named = name != "" && grammatical(name)
	p.id = func() string {
		if p.named {
			return conversation(c.who(), c.profile.Name, "named", []byte(name))
		}
		return conversation(c.who(), c.profile.Name, "begins", firstMessage(c.body))
	}
	return p
}

// who is [Who] sent the request.
func (c *call) who() string {
	key := ""
	if who := c.caller(); who != nil {
		key = who.Key
	}
	return Who(key, c.req.Header)
}

// Who tells callers apart: by the id of their key of Stoplog's, or else by the
// provider's keys in the header. It is a digest.
func Who(key string, header http.Header) string {
	h := sha256.New()
	if key != "" {
		fmt.Fprintf(h, "key\x00%s", key)
		return hex.EncodeToString(h.Sum(nil))
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
		if v := header.Get(name); v != "" {
			fmt.Fprintf(h, "%s\x00%d\x00%s", name, len(v), v)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// conversation is the id of a caller's conversation.
func conversation(caller, profile, kind string, of []byte) string {
	h := sha256.New()
	h.Write([]byte("stoplog.conversation.v1"))
	for _, s := range [][]byte{[]byte(caller), []byte(profile), []byte(kind), of} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write(s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// firstMessage is what a request's conversation begins with, as it is written; all
// of the request where it has no messages.
func firstMessage(body []byte) []byte {
	var asked struct {
		Messages []json.RawMessage `json:"messages"`
		Input    json.RawMessage   `json:"input"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return body
	}
	var items []json.RawMessage
	switch {
	case len(asked.Messages) > 0:
		items = asked.Messages
	case json.Unmarshal(asked.Input, &items) == nil && len(items) > 0:
	case len(asked.Input) > 0:
		return asked.Input
	default:
		return body
	}
	// What is said to the model before anybody speaks may be another day's.
	for _, item := range items {
		var m struct{ Role string }
		if json.Unmarshal(item, &m) == nil && (m.Role == "system" || m.Role == "developer") {
			continue
		}
		return unmarked(item)
	}
	return items[0]
}

// unmarked is a message without what clients move from message to message: where
// the provider is to cache.
func unmarked(message json.RawMessage) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(message))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return message
	}
	strip(v)
	out, err := json.Marshal(v)
	if err != nil {
		return message
	}
	return out
}

func strip(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "cache_control")
		for _, m := range v {
			strip(m)
		}
	case []any:
		for _, m := range v {
			strip(m)
		}
	}
}

// Reversible implements [wire.Stand].
func (p *places) Reversible(guard string) bool { return slices.Contains(p.profile.Reversible, guard) }

// maxPlaces is how many values of a conversation have placeholders.
const maxPlaces = 4096

// Placeholder implements [wire.Stand].
func (p *places) Placeholder(rule, value string) string {
	if p.load(); p.err != nil {
		return ""
	}
	name := p.names[value]
	if name == "" {
		if len(p.known) >= maxPlaces {
			return ""
		}
		name = p.free(class(rule))
		p.learn(name, value)
		p.added[name] = value
	}
	p.used[name] = value
	return name
}

func (p *places) learn(name, value string) {
	p.known[name], p.names[value] = value, name
	p.counts[name[:strings.LastIndexByte(name, '_')]]++
}

// load reads what there is of the conversation, once.
func (p *places) load() {
	if p.loaded {
		return
	}
	p.loaded = true
	var found map[string]string
	if found, p.err = p.values.Values(p.ctx, p.id()); p.err != nil {
		p.err = fmt.Errorf("govern: read what the placeholders stand for: %w", p.err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		p.learn(name, found[name])
	}
}

// free is the next placeholder of a class that is not taken, and that the request
// does not have of itself.
func (p *places) free(class string) string {
	if p.lower == nil {
		p.lower = bytes.ToLower(p.body)
	}
	for n := p.counts["["+class] + 1; ; n++ {
		name := fmt.Sprintf("[%s_%d]", class, n)
		if _, taken := p.known[name]; !taken && !bytes.Contains(p.lower, []byte(strings.ToLower(name))) {
			return name
		}
	}
}

// class is a rule as a placeholder names it.
func class(rule string) string {
	const most = 40
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, rule)
	return strings.Trim(name[:min(len(name), most)], "_")
}

// keep keeps what is new. ErrTaken: the request is to be judged again.
func (p *places) keep() error {
	if p.err != nil {
		return p.err
	}
	if len(p.added) == 0 {
		return nil
	}
	if err := p.values.Add(p.ctx, p.id(), p.added); err != nil {
		return fmt.Errorf("govern: keep what the placeholders stand for: %w", err)
	}
	return nil
}

// restore are the placeholders that are put back in the answer.
func (p *places) restore() (*wire.Placeholders, error) {
	if p == nil {
		return nil, nil
	}
	if p.named {
		if p.load(); p.err != nil {
			return nil, p.err
		}
		return wire.NewPlaceholders(p.known), nil
	}
	return wire.NewPlaceholders(p.used), nil
}

// judged judges a request, with placeholders where the profile wants them. Where
// another request of the conversation was faster it is judged again.
func (c *call) judged() (*wire.Request, error) {
	const tries = 16
	for n := 1; ; n++ {
		opt := wire.Options{Context: c.ctx, Chain: c.profile.input, Run: c.run, Media: wire.Media(c.profile.Media), Clean: c.profile.clean}
		if c.recalls() {
			opt.Recall = c.recall
		}
		c.places = c.newPlaces()
		if c.places != nil {
			opt.Stand = c.places
		}
		asked, err := c.format.Request(opt, c.body)
		if err != nil {
			return nil, &badRequest{err}
		}
		if c.places == nil {
			return asked, nil
		}
		if err = c.places.keep(); err == nil {
			c.restore, err = c.places.restore()
		}
		if err == nil || !errors.Is(err, ErrTaken) || n == tries {
			return asked, err
		}
	}
}

// badRequest: what is asked cannot be read.
type badRequest struct{ err error }

func (e *badRequest) Error() string { return "the request is not valid JSON: " + e.err.Error() }
func (e *badRequest) Unwrap() error { return e.err }
