package wire

import (
	"strconv"

	"github.com/stoplog/stoplog/guard"
)

// A Request is what a caller asks a model, judged.
type Request struct {
	Verdict
	Model   string
	Stream  bool
	Choices int
	// Prompt is the system prompt, as the caller wrote it; empty if there is none.
	Prompt string
	// Usage says that the caller asked for the usage at a stream's end.
	Usage bool
	// Recalled is the document with thoughts as their provider signed them, for that
	// provider alone; nil if there are none.
	Recalled []byte
	// Tokens is an estimate of the request's size.
	Tokens int64
	// MaxTokens is the most that each answer may have; 0 if the caller said nothing.
	MaxTokens int64
	// Tiers are what it says of how it is to be served: priority, fast. Most say
	// nothing.
	Tiers []string
}

// Request judges a request. Every string and number in it is screened: those
// that a table calls text or that none names may be redacted, in others a
// finding denies. The error is about a document that cannot be read.
//
// A streamed request to OpenAI asks for the usage whether the caller did or
// not.
func (f *Format) Request(opt Options, doc []byte) (*Request, error) {
	b := &document{judgement: newJudgement(opt.Context, opt.Chain, guard.Request), doc: doc}
	b.stand = opt.Stand
	var sc scanner
	leaves, err := sc.scan(doc, f.tables["request"].root)
	if err != nil {
		return nil, err
	}
	if !isObject(doc) {
		return nil, errNoObject
	}
	b.leaves = leaves
	r := &Request{Choices: 1, Tokens: Estimate(int64(len(doc)))}
	r.read(b, leaves)
	r.Stream = r.Stream && f.Streams()
	r.Prompt = b.prompt()
	if err := f.readable(b); err != nil {
		return nil, err
	}
	if stopped := b.judgeMedia(opt.Media); !stopped && len(opt.Chain.Members()) > 0 {
		b.screenRequest(opt.Clean)
	}
	if f == OpenAIChat && r.Stream {
		b.askUsage()
	}
	r.Decisions, r.Outcome = b.decisions, b.outcome.result()
	r.Outcome.Usage = Usage{Input: r.Tokens, Estimated: true}
	if b.outcome.stop == nil {
		if r.Doc = doc; len(b.splices) > 0 {
			r.Doc = applySplices(make([]byte, 0, len(doc)), doc, b.splices)
		}
		if opt.Recall != nil {
			if back := b.recall(opt.Recall); back != nil {
				r.Recalled = applySplices(nil, doc, append(back, b.splices...))
			}
		}
	}
	return r, nil
}

// RefusedError is a request that asks for what cannot be judged.
type RefusedError struct{ Code, Message string }

func (e *RefusedError) Error() string { return e.Message }

// readable refuses what would go, or come back, unjudged.
func (f *Format) readable(b *document) error {
	switch f {
	case OpenAIEmbeddings:
		if len(b.chain.Members()) > 0 && inTokens(b.leaves) {
			return &RefusedError{"unreadable_input", "the input is given as tokens, which no guard can read: send it as text (langchain: check_embedding_ctx_length=False)"}
		}
	case OpenAIResponses:
		if i := find(b.leaves, "background"); i >= 0 && b.doc[b.leaves[i].from] == 't' {
			return &RefusedError{"background_not_served", "a response in the background is fetched by a path that is not served: ask without background"}
		}
	}
	return nil
}

// read notes what the gateway itself must know.
func (r *Request) read(b *document, leaves []leaf) {
	for _, l := range leaves {
		if l.node == nil || l.depth > 0 {
			continue
		}
		switch l.node.channel {
		case "model":
			if l.token == '"' {
				r.Model = string(b.content(b.doc, &l))
			}
		case "stream":
			r.Stream = b.doc[l.from] == 't'
		case "n":
			if n, ok := count(b.doc[l.from:l.to]); ok && n > 0 && n <= maxChoices {
				r.Choices = int(n)
			}
		case "tier":
			if l.token == '"' {
				r.Tiers = append(r.Tiers, string(b.content(b.doc, &l)))
			}
		case "max-tokens":
			if n, ok := count(b.doc[l.from:l.to]); ok {
				r.MaxTokens = max(r.MaxTokens, n)
			}
		case "include_usage":
			r.Usage = b.doc[l.from] == 't'
		}
	}
}

// askUsage makes the request ask for the usage.
func (b *document) askUsage() {
	at := func(path string) *leaf {
		for i, l := range b.leaves {
			if l.token != 'k' && (l.node != nil && l.node.path == path || l.node == nil && l.path == path) {
				return &b.leaves[i]
			}
		}
		return nil
	}
	options, usage := at("stream_options"), at("stream_options.include_usage")
	switch {
	case usage != nil:
		b.splices = append(b.splices, splice{usage.from, usage.to, []byte("true")})
	case options == nil:
		b.splices = append(b.splices, adding(b.doc, len(b.doc), `"stream_options":{"include_usage":true}`))
	case options.token == 'n':
		b.splices = append(b.splices, splice{options.from, options.to, []byte(`{"include_usage":true}`)})
	case options.token == '{' && b.doc[options.from] == '{':
		b.splices = append(b.splices, adding(b.doc, options.to, `"include_usage":true`))
	}
}

// path is where a leaf stands, with the positions in arrays: messages/3/content.
func (b *document) path(l leaf) string {
	var out []byte
	k := 0
	p := l.node.path
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '.':
			out = append(out, '/')
		case p[i] == '[':
			i++
			out = append(out, '/')
			if k < len(l.idx) {
				out = strconv.AppendInt(out, int64(l.idx[k]), 10)
			}
			k++
		default:
			out = append(out, p[i])
		}
	}
	return string(out)
}
