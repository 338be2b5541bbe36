package cassette

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The paths of the two formats.
const (
	chat     = "/v1/chat/completions"
	messages = "/v1/messages"
)

// said is what an answer says, in whatever format.
type said struct {
	Thought, Text, Args, Finish string
	In, Out                     int64

	deltas []string // the pieces in which it was said
}

func (s *said) add(thought, text, args string) {
	s.Thought, s.Text, s.Args = s.Thought+thought, s.Text+text, s.Args+args
	s.deltas = append(s.deltas, thought+text+args)
}

// readStream reads a stream of either format, and holds it to the provider's
// form. Of one that is cut off, what is before the frame that is not whole.
func readStream(t *testing.T, path string, data []byte, cut bool) said {
	t.Helper()
	stream, half := string(data), ""
	if i := strings.LastIndex(stream, "\n\n"); i >= 0 {
		stream, half = stream[:i+1], stream[i+2:]
	}
	if cut != (half != "") {
		t.Errorf("after its last whole frame the stream has %q, cut is %v", half, cut)
	}
	var s said
	if path == chat {
		s = readChunks(t, frames(t, stream, "data"), cut)
	} else {
		s = readEvents(t, frames(t, stream, "event", "data"), cut)
	}
	s.Args = projection(t, s.Args)
	return s
}

// frames gives the values of each event's fields. Every event has these fields,
// in this order, each on one line.
func frames(t *testing.T, stream string, fields ...string) [][]string {
	t.Helper()
	var all [][]string
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n"), "\n\n") {
		lines := strings.Split(event, "\n")
		if len(lines) != len(fields) {
			t.Fatalf("an event of %d lines: %q", len(lines), event)
		}
		for i, line := range lines {
			value, ok := strings.CutPrefix(line, fields[i]+": ")
			if !ok {
				t.Fatalf("the line %q, want the field %s", line, fields[i])
			}
			lines[i] = value
		}
		all = append(all, lines)
	}
	return all
}

// chunk is OpenAI's event, and its whole answer.
type chunk struct {
	ID, Object, Model string
	Created           int64
	Fingerprint       string `json:"system_fingerprint"`
	Choices           []struct {
		Delta, Message chatMessage
		Finish         string `json:"finish_reason"`
	}
	Usage *struct {
		In  int64 `json:"prompt_tokens"`
		Out int64 `json:"completion_tokens"`
	}
}

type chatMessage struct {
	Role, Content string
	Reasoning     string `json:"reasoning_content"`
	Tools         []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (m chatMessage) args() string {
	args := ""
	for _, tool := range m.Tools {
		args += tool.Function.Arguments
	}
	return args
}

func (c *chunk) read(t *testing.T, object, data string) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), c); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	if c.Object != object || !strings.HasPrefix(c.ID, "chatcmpl-") || c.Model == "" || c.Created == 0 || c.Fingerprint == "" {
		t.Errorf("not what OpenAI sends as %s: %s", object, data)
	}
}

// readChunks reads an OpenAI stream: the role first, the reason and then the
// usage last, as it comes where it was asked for, and [DONE].
func readChunks(t *testing.T, frames [][]string, cut bool) said {
	t.Helper()
	var s said
	if !cut {
		if last := frames[len(frames)-1][0]; last != "[DONE]" {
			t.Errorf("the last event is %q, want [DONE]", last)
		}
		frames = frames[:len(frames)-1]
	}
	for i, frame := range frames {
		var c chunk
		c.read(t, "chat.completion.chunk", frame[0])
		if last := i == len(frames)-1 && !cut; (c.Usage != nil) != last || (len(c.Choices) == 0) != last {
			t.Errorf("usage, and no choice, is for the last chunk: %s", frame[0])
		}
		if c.Usage != nil {
			s.In, s.Out = c.Usage.In, c.Usage.Out
		}
		for _, choice := range c.Choices {
			d := choice.Delta
			if (d.Role == "assistant") != (i == 0) {
				t.Errorf("the role is for the first chunk: %s", frame[0])
			}
			s.add(d.Reasoning, d.Content, d.args())
			s.Finish += choice.Finish
		}
	}
	return s
}

// event is any of Anthropic's.
type event struct {
	Type    string
	Message message
	Delta   struct {
		Text, Thinking string
		JSON           string `json:"partial_json"`
		Stop           string `json:"stop_reason"`
	}
	Usage usage
}

type usage struct {
	In  int64 `json:"input_tokens"`
	Out int64 `json:"output_tokens"`
}

// message is Anthropic's whole answer, and how a stream of it starts.
type message struct {
	ID, Type, Role, Model string
	Content               []struct {
		Type, Text, Thinking, Signature string
		Input                           json.RawMessage
	}
	Stop  string `json:"stop_reason"`
	Usage usage
}

func (m message) check(t *testing.T) {
	t.Helper()
	if !strings.HasPrefix(m.ID, "msg_01") || m.Type != "message" || m.Role != "assistant" || m.Model == "" || m.Usage.In == 0 {
		t.Errorf("not what Anthropic sends as a message: %+v", m)
	}
}

// readEvents reads an Anthropic stream.
func readEvents(t *testing.T, frames [][]string, cut bool) said {
	t.Helper()
	var s said
	var order []string // of the events, repeated ones once
	for _, frame := range frames {
		var e event
		if err := json.Unmarshal([]byte(frame[1]), &e); err != nil {
			t.Fatalf("%v in %s", err, frame[1])
		}
		if e.Type != frame[0] {
			t.Errorf("event %s has the type %s", frame[0], e.Type)
		}
		order = append(order, e.Type)
		if e.Type == "message_start" {
			e.Message.check(t)
			s.In = e.Message.Usage.In
		}
		s.add(e.Delta.Thinking, e.Delta.Text, e.Delta.JSON)
		s.Finish += e.Delta.Stop
		s.Out += e.Usage.Out
	}
	events := strings.Join(slices.Compact(order), " ")
	if !strings.HasPrefix(events, "message_start content_block_start ping content_block_delta") {
		t.Errorf("the stream begins otherwise: %s", events)
	}
	if !cut && !strings.HasSuffix(events, "content_block_delta content_block_stop message_delta message_stop") {
		t.Errorf("the stream ends otherwise: %s", events)
	}
	return s
}

// readBodyOf reads an unstreamed answer. One that is cut off inside its text is
// completed first.
func readBodyOf(t *testing.T, path string, data []byte, cut bool) said {
	t.Helper()
	if cut == json.Valid(data) {
		t.Errorf("the body is whole: %v, cut is %v", !cut, cut)
	}
	if path == chat {
		if cut {
			return said{Text: cutText(t, data, `"}}]}`, func(c chunk) string { return c.Choices[0].Message.Content })}
		}
		var c chunk
		c.read(t, "chat.completion", string(data))
		m := c.Choices[0].Message
		return said{m.Reasoning, m.Content, projection(t, m.args()), c.Choices[0].Finish, c.Usage.In, c.Usage.Out, nil}
	}
	if cut {
		return said{Text: cutText(t, data, `"}]}`, func(m message) string { return m.Content[0].Text })}
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	m.check(t)
	s := said{Finish: m.Stop, In: m.Usage.In, Out: m.Usage.Out}
	for _, block := range m.Content {
		s.Thought += block.Thinking
		s.Text += block.Text
		s.Args += projection(t, string(block.Input))
		if (block.Type == "thinking") != (block.Signature != "") {
			t.Errorf("a block of type %s has the signature %q", block.Type, block.Signature)
		}
	}
	return s
}

func cutText[T any](t *testing.T, data []byte, rest string, text func(T) string) string {
	t.Helper()
	var v T
	if err := json.Unmarshal(append(data, rest...), &v); err != nil {
		t.Fatalf("the body is cut outside its text: %v", err)
	}
	return text(v)
}
