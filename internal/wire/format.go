package wire

import (
	"context"
	"strings"

	"github.com/stoplog/stoplog/guard"
)

// Format is one provider's way to speak: its answers, streamed and not, and its
// requests.
type Format struct {
	name    string
	tables  map[string]*table
	dialect func() dialect // nil of answers that do not stream
	answer  string         // the table of unstreamed answers
	body    func(*document, []leaf) error
	// appendError appends the body of an error answer.
	appendError func(dst []byte, e Error) []byte
}

// At is the format of what the same provider serves at a path.
func (f *Format) At(path string) *Format {
	switch last := path[strings.LastIndexByte(path, '/')+1:]; {
	case f == OpenAIChat && last == "responses":
		return OpenAIResponses
	case f == OpenAIChat && last == "embeddings":
		return OpenAIEmbeddings
	case f == AnthropicMessages && last == "count_tokens":
		return AnthropicCountTokens
	}
	return f
}

// Streams reports whether answers may stream.
func (f *Format) Streams() bool { return f.dialect != nil }

// Name is the format's name in documents and records.
func (f *Format) Name() string { return f.name }

// A dialect is what a format's streams have of their own. Its methods file
// what frames say into the stream's channels, and write what a client of the
// format needs to read at the end.
type dialect interface {
	// table is the table of a payload. end reports that the payload is the
	// format's end mark, which is no document.
	table(payload, event []byte) (t *table, end bool, err error)
	// read files the leaves of a frame and passes it on with Stream.queue, or
	// gives it to Stream.release.
	read(s *Stream, f *frame, leaves []leaf) error
	// leave takes a frame that may leave now, to emit it or to keep it.
	leave(s *Stream, f *frame)
	// sent notes a frame of which something is sent, and whether the rest of it is
	// to follow.
	sent(f *frame, part bool)
	// cut makes what else changes in a frame of which a part is sent.
	cut(f *frame)
	// stopLane writes what follows a stop at once.
	stopLane(s *Stream, lane int)
	// end writes the end of the answer. It is called once, when everything has
	// left that will.
	end(s *Stream)
	// fail writes the format's error, which ends the stream.
	fail(s *Stream, reason string)
	// complete reports whether the end mark was seen.
	complete() bool
}

// Options say how one response is to be judged.
type Options struct {
	Context context.Context
	Chain   *guard.Chain
	// Calls, if not nil, are the rules for the tool calls of an answer.
	Calls Calls
	// Run names the request in what a client is told of findings; without it
	// the client is told nothing of them, and an answer has no more members than
	// came.
	Run string
	// Choices is how many answers were asked for; 0 is 1.
	Choices int
	// Usage says that the caller asked for the usage at the end of a stream
	// (OpenAI only); otherwise it is read and left out.
	Usage bool
	// Redacted is the outcome of the request itself where that was redacted: it
	// names the whole where the answer has no finding of its own.
	Redacted *Outcome
	// Media says what of a request may be sent that no guard can read.
	Media Media
	// Clean remembers, for the chain alone, what of requests is clean; nil: all of
	// each is judged.
	Clean *Clean
	// Stand says what stands for what is redacted in a request; nil: nothing does,
	// and nothing comes back.
	Stand Stand
	// Recalls keeps thoughts that go out changed, for Stream.Thoughts and
	// Verdict.Thoughts; Recall finds one of a request by what was shown of it.
	Recalls bool
	Recall  func(shown string) (Thought, bool)
	// Restore are the placeholders that an answer may hold; nil: there are none.
	Restore *Placeholders
	// Hold keeps an answer of one choice where a verdict asks for approval: nothing
	// more of it leaves, neither what precedes the span in its frame nor an end,
	// until Stream.LetGo.
	Hold bool
	// Approval is the question to a person that a withheld rest waits for, and Why
	// what a client is told of it; both may be empty.
	Approval, Why string
	// Input is the estimate of the request's tokens, for when the provider does
	// not report them.
	Input int64
	// Failed says why an unstreamed answer is one of failure, where its HTTP
	// status says so; its outcome is then UpstreamFailed, unless a verdict stops
	// it.
	Failed string
	// MaxFrame is the longest frame accepted, in bytes; 0 is sse.DefaultMaxFrame.
	MaxFrame int
}

// Error is an answer that says why there is none.
type Error struct {
	Status  int    // HTTP
	Type    string // in the format's own words; see the format's appendError
	Code    string
	Message string
	Run     string
	Outcome *Outcome // nil where no policy and no upstream was involved
}
