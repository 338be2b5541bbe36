package claude

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Event is a line of what `claude -p --output-format stream-json` writes: what is
// read of it. Kinds and members that nobody here knows are kept, and say nothing.
type Event struct {
	head
	setup
	said
	task
	ending
}

// head is what every event has.
type head struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
}

// setup is the event system/init.
type setup struct {
	Model          string   `json:"model"`
	Tools          []string `json:"tools"`
	PermissionMode string   `json:"permissionMode"`
	Servers        []server `json:"mcp_servers"`
}

// said is assistant and user.
type said struct {
	Message *message `json:"message"`
}

// task is what is told of a task, and of a tool that was denied.
type task struct {
	Task   string `json:"task_id"`
	Status string `json:"status"`
	Tool   string `json:"tool_name"`
}

// ending is the event result.
type ending struct {
	IsError        bool                  `json:"is_error"`
	APIStatus      *int                  `json:"api_error_status"`
	TerminalReason string                `json:"terminal_reason"`
	Denials        []denial              `json:"permission_denials"`
	Structured     json.RawMessage       `json:"structured_output"`
	ModelUsage     map[string]modelUsage `json:"modelUsage"`
	Index          *int                  `json:"result_index"`
}

// UnmarshalJSON reads the members that an event of its kind has. Other kinds use
// the same names for other things.
func (e *Event) UnmarshalJSON(b []byte) error {
	*e = Event{}
	if err := json.Unmarshal(b, &e.head); err != nil {
		return err
	}
	switch {
	case e.is("system", "init"):
		return json.Unmarshal(b, &e.setup)
	case e.Type == "assistant", e.Type == "user":
		return json.Unmarshal(b, &e.said)
	case e.Type == "result":
		return json.Unmarshal(b, &e.ending)
	case e.is("system", "task_started"), e.is("system", "task_notification"), e.is("system", "permission_denied"):
		return json.Unmarshal(b, &e.task)
	}
	return nil
}

type server struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type message struct {
	ID    string `json:"id"`
	Model string `json:"model"`
	Usage *usage `json:"usage"`
}

type denial struct {
	Tool string `json:"tool_name"`
}

type modelUsage struct {
	Canonical string `json:"canonicalModel"`
}

// usage is what a message took, in tokens, as Anthropic counts: input is what no
// cache held.
type usage struct {
	Input         int64 `json:"input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	Output        int64 `json:"output_tokens"`
}

// asked are all tokens of the question.
func (u usage) asked() int64 { return u.Input + u.CacheCreation + u.CacheRead }

// ParseEvents reads a line, or the whole of an output of the format json, which is
// one event or a list of them.
func ParseEvents(line []byte) ([]Event, error) {
	line = bytes.TrimSpace(line)
	if bytes.HasPrefix(line, []byte("[")) {
		var events []Event
		err := json.Unmarshal(line, &events)
		return events, err
	}
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, err
	}
	return []Event{e}, nil
}

// is reports whether an event has a type and a subtype.
func (e Event) is(kind, subtype string) bool { return e.Type == kind && e.Subtype == subtype }

// synthetic is the name of the model of messages that the program itself writes.
const synthetic = "<synthetic>"

// sameModel reports whether a name is that of the pinned model. A context window
// may be part of a name.
func sameModel(pin, name string) bool {
	name, _, _ = strings.Cut(name, "[")
	return name == pin
}

// sameFamily reports whether a canonical name, which has no date, can be that of
// the pinned model.
func sameFamily(pin, canonical string) bool {
	return canonical == "" || pin == canonical || strings.HasPrefix(pin, canonical+"-20")
}
