package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A standIn is a tool that is nothing but its declaration.
type standIn Spec

func (s standIn) Spec() Spec                                         { return Spec(s) }
func (standIn) Run(context.Context, json.RawMessage) (Output, error) { return Output{}, nil }

func ready(t testing.TB, schema string) *Ready {
	t.Helper()
	set, err := NewSet(standIn{Name: "it", Description: "does it", Schema: json.RawMessage(schema), Effect: Read})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := set.Lookup("it")
	return r
}

const bookings = `{"type":"object","additionalProperties":false,"required":["seat"],"properties":{
	"seat":{"type":"string","pattern":"^[0-9]+[A-F]$"},
	"class":{"enum":["economy","first"]},
	"bags":{"type":"array","maxItems":2,"items":{"type":"object","properties":{"kg":{"type":"number","minimum":0,"maximum":32}}}},
	"notes":{"type":"object","additionalProperties":{"type":"string"}},
	"price":{"type":"number"}}}`

func TestArguments(t *testing.T) {
	r := ready(t, bookings)
	for _, c := range []struct{ text, want, wrong string }{
		{text: `{"seat":"12A"}`, want: `{"seat":"12A"}`},
		{text: ` { "seat" : "12\u0041" , "bags":[{"kg":1.50e1}] } `, want: `{"bags":[{"kg":15}],"seat":"12A"}`},
		{text: `{"seat":"12A","price":0.1}`, want: `{"price":0.1,"seat":"12A"}`},
		{text: `{"seat":"12A","price":-0}`, want: `{"price":0,"seat":"12A"}`},
		{text: `{"seat":"12A","price":9007199254740992}`, want: `{"price":9007199254740992,"seat":"12A"}`},

		{text: "", wrong: "there are none: write {} where there is nothing to say"},
		{text: " \n", wrong: "there are none: write {} where there is nothing to say"},
		{text: `{"seat":"12A"`, wrong: "the JSON ends too early, at byte 13"},
		{text: `{"seat":"12A`, wrong: "the JSON ends too early, at byte 12"},
		{text: `{seat:"12A"}`, wrong: "they are not valid JSON, from byte 1 on"},
		{text: `{"seat":"12A"}}`, wrong: "something follows the JSON value at byte 14"},
		{text: `{"seat":"12A"} {}`, wrong: "something follows the JSON value at byte 16"},
		{text: "{\"seat\":\"\xff\"}", wrong: "they are not valid JSON, from byte 9 on"},
		{text: `{"seat":"\ud800"}`, wrong: "they are not valid JSON, from byte 9 on"},
		{text: `{"seat":"12A","seat":"hunter2"}`, wrong: "the member at byte 14 has the name of one before it"},
		{text: `{"seat":"12A","se\u0061t":"hunter2"}`, wrong: "the member at byte 14 has the name of one before it"},
		{text: `[]`, wrong: "they are not a JSON object"},
		{text: `null`, wrong: "they are not a JSON object"},
		{text: `"{}"`, wrong: "they are not a JSON object"},
		{text: `{"seat":"12A","price":9007199254740993}`, wrong: "the number before byte 38 has more digits than programs keep: write it as a string, or round it"},
		{text: `{"seat":"12A","price":1e999999999}`, wrong: "the number before byte 33 has more digits than programs keep: write it as a string, or round it"},
		{text: `{"seat":"12A","price":1e-999999999}`, wrong: "the number before byte 34 has more digits than programs keep: write it as a string, or round it"},

		{text: `{}`, wrong: "lacks seat"},
		{text: `{"seat":12}`, wrong: "/seat must be string, and is number"},
		{text: `{"seat":"hunter2"}`, wrong: "/seat must match the pattern ^[0-9]+[A-F]$"},
		{text: `{"seat":"1A","class":"hunter2"}`, wrong: `/class must be one of ["economy","first"]`},
		{text: `{"seat":"1A","hunter2":1}`, wrong: "has 1 member that the tool does not know; it knows: bags, class, notes, price, seat"},
		{text: `{"seat":"1A","bags":[{"kg":1},{"kg":33}]}`, wrong: "/bags/1/kg must be at most 32"},
		{text: `{"seat":"1A","bags":[{},{},{}]}`, wrong: "/bags must have 2 items at most"},
		{text: `{"seat":"1A","notes":{"hunter2":7}}`, wrong: "/notes/* must be string, and is number"},
	} {
		got, err := r.Arguments(c.text)
		if c.wrong == "" {
			if err != nil || string(got) != c.want {
				t.Errorf("%s: got %s, %v; want %s", c.text, got, err, c.want)
			}
			continue
		}
		var bad *ArgumentsError
		if got != nil || !errors.As(err, &bad) || bad.Text != c.wrong {
			t.Errorf("%s: got %s, %v; want the error %q", c.text, got, err, c.wrong)
		}
	}
}

func TestArgumentsTooLong(t *testing.T) {
	r := ready(t, `{"type":"object"}`)
	if _, err := r.Arguments(`{"a":"` + strings.Repeat("a", MaxArguments) + `"}`); err == nil || err.Error() != "they are longer than 1048576 bytes" {
		t.Errorf("got %v", err)
	}
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	if _, err := r.Arguments(deep); err == nil {
		t.Error("arguments of any depth were taken")
	}
}

// Whatever a model writes, it is refused without its own words, or read in a
// way that reading it again does not change.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"seat":"12A","bags":[{"kg":1e1}]}`, `{"seat":"xyzzy"}`, `{"xyzzy":1}`, `{"seat":"1A","seat":"1A"}`, `{"notes":{"xyzzy":0.1}}`, `{"seat`, ``} {
		f.Add(seed)
	}
	r := ready(f, bookings)
	f.Fuzz(func(t *testing.T, text string) {
		args, err := r.Arguments(text)
		if err != nil {
			if strings.Contains(err.Error(), "xyzzy") {
				t.Errorf("%q: the error repeats it: %v", text, err)
			}
			return
		}
		again, err := r.Arguments(string(args))
		if err != nil || string(again) != string(args) {
			t.Errorf("%q: read as %s, and that as %s, %v", text, args, again, err)
		}
		var a, b any
		if json.Unmarshal([]byte(text), &a) != nil || json.Unmarshal(args, &b) != nil {
			t.Errorf("%q: taken, and encoding/json reads it not", text)
		}
		if x, _ := json.Marshal(a); string(x) == "" {
			t.Errorf("%q: nothing", text)
		} else if y, _ := json.Marshal(b); string(x) != string(y) {
			t.Errorf("%q: read as %s, is %s", text, y, x)
		}
	})
}

func TestSet(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	good := standIn{Name: "a", Description: "d", Schema: object, Effect: Read}
	with := func(change func(*standIn)) standIn {
		s := good
		change(&s)
		return s
	}
	for _, c := range []struct {
		tools []Tool
		want  string
	}{
		{[]Tool{good}, ""},
		{[]Tool{good, good}, `two tools are named "a"`},
		{[]Tool{with(func(s *standIn) { s.Name = "a b" })}, `tool "a b": a name is 1 to 64 letters, digits, _ and -`},
		{[]Tool{with(func(s *standIn) { s.Name = "" })}, `tool "": a name is 1 to 64 letters, digits, _ and -`},
		{[]Tool{with(func(s *standIn) { s.Description = "" })}, `tool "a": there is no description: the model cannot know what it is for`},
		{[]Tool{with(func(s *standIn) { s.Effect = 0 })}, `tool "a": there is no effect: declare read, idempotent, write or irreversible`},
		{[]Tool{with(func(s *standIn) { s.Class = 9 })}, `tool "a": unknown data class(9)`},
		{[]Tool{with(func(s *standIn) { s.Schema = json.RawMessage(`{"type":"string"}`) })}, `tool "a": read its schema: arguments are an object: "type" must be "object"`},
		{[]Tool{with(func(s *standIn) { s.Schema = json.RawMessage(`[]`) })}, `tool "a": read its schema: arguments are an object: "type" must be "object"`},
	} {
		if _, err := NewSet(c.tools...); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, object, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"$ref":"file://` + file + `"}}}`,
		`{`, `{"type":"object","required":3}`,
		`{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1/x"}}}`,
		`{"type":"object","properties":{"a":{"pattern":"("}}}`,
	} {
		if _, err := NewSet(with(func(s *standIn) { s.Schema = json.RawMessage(schema) })); err == nil || !strings.HasPrefix(err.Error(), `tool "a": read its schema: `) {
			t.Errorf("%s: got %v", schema, err)
		}
	}
}
