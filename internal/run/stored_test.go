package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kinds has an event of every kind, each with nothing in it.
var kinds = []Event{
	Created{}, Claimed{}, ModelStarted{}, ModelAnswered{}, ModelWithheld{}, ModelFailed{}, BudgetSpent{},
	CallStarted{}, CallFinished{}, Asked{}, Decided{}, Replied{}, Expired{}, Resolved{}, AnswerReleased{},
	StepEvaluated{}, Cancelled{}, TimedOut{}, InternalError{}, Ended{},
}

// fill sets every field of what v points to, each to another value, so that one
// that a stored form forgot, or mixed up, is missed.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case Stamp:
		v.Set(reflect.ValueOf(At(start.Add(time.Duration(*n) * time.Second))))
		return
	case time.Time:
		v.Set(reflect.ValueOf(start.Add(time.Duration(*n) * time.Second)))
		return
	case Steps:
		var step Step
		fill(reflect.ValueOf(&step).Elem(), n)
		v.Set(reflect.ValueOf(Steps{}.push(step)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.String:
		v.SetString(string(rune('a' + *n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	default:
		v.SetInt(int64(*n))
	}
}

func filled(e Event) Event {
	v := reflect.New(reflect.TypeOf(e)).Elem()
	n := 0
	fill(v, &n)
	return v.Interface().(Event)
}

func TestStoredEvents(t *testing.T) {
	if len(kinds) != len(codecs) {
		t.Errorf("%d kinds of events, %d stored forms", len(kinds), len(codecs))
	}
	for _, empty := range kinds {
		t.Run(empty.Kind(), func(t *testing.T) {
			reread(t, empty)
			reread(t, filled(empty))
		})
	}
}

func TestStoredState(t *testing.T) {
	for name, s := range map[string]State{"empty": {}, "filled": filledState()} {
		t.Run(name, func(t *testing.T) {
			again, err := UnmarshalState(snapshot(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s, again); diff != "" {
				t.Errorf("read back (-said +read):\n%s", diff)
			}
		})
	}
}

func filledState() State {
	var s State
	n := 0
	fill(reflect.ValueOf(&s).Elem(), &n)
	return s
}

// TestStoredSamples: what was ever stored can be read. A folder of testdata/stored
// is a version of the stored form; its samples are never rewritten. -update adds
// those that are missing.
func TestStoredSamples(t *testing.T) {
	current := map[string][]byte{"state": snapshot(t, filledState())}
	for _, e := range kinds {
		_, payload, err := Marshal(filled(e))
		if err != nil {
			t.Fatal(err)
		}
		current[e.Kind()] = payload
	}
	for _, name := range slices.Sorted(maps.Keys(current)) {
		file := filepath.Join("testdata/stored/v1", name+".json")
		sample, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) && *update {
			sample = append(current[name], '\n')
			err = os.WriteFile(file, sample, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := string(current[name]) + "\n"; got != string(sample) {
			t.Errorf("%s is stored otherwise now; that takes a new version:\n-%s+%s", name, sample, got)
		}
		if sorted := sortMembers(t, sample); !bytes.Equal(bytes.TrimSpace(sample), sorted) {
			t.Errorf("%s: members are not sorted:\n-%s+%s", name, sample, sorted)
		}
	}
}

func sortMembers(t *testing.T, b []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := encodeJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStoredRefuses(t *testing.T) {
	for name, c := range map[string]struct{ kind, payload, want string }{
		"unknown kind":   {"created_again", `{"v":1}`, `unknown kind`},
		"newer":          {"expired", `{"id":"a","v":2}`, `a newer stoplog wrote it`},
		"no version":     {"expired", `{"id":"a"}`, `no version`},
		"unknown member": {"expired", `{"id":"a","idd":"b","v":1}`, `unknown field "idd"`},
		"unknown word":   {"resolved", `{"by":"a","call":1,"choice":"maybe","step":1,"v":1}`, `unknown choice "maybe"`},
		"no JSON":        {"expired", `{"id":`, `unexpected end`},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Unmarshal(c.kind, start, []byte(c.payload))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v: want an error with %q", e, err, c.want)
			}
		})
	}
	var newer *VersionError
	if _, err := UnmarshalState([]byte(`{"v":9}`)); !errors.As(err, &newer) || newer.Version != 9 {
		t.Errorf("newer state: %v, want a VersionError of 9", err)
	}
}

// TestStoredText: text comes back byte for byte, or is refused, since a run that
// is read back must be the run that was.
func TestStoredText(t *testing.T) {
	for _, text := range []string{"", "<&>\u2028", "\ufffd", `\ufffd`, "a\x00b", "é\r\n"} {
		reread(t, CallFinished{Stamp: At(start), Text: text})
	}
	for _, text := range []string{"\xff", "\ufffd\xc3", `\ufffd` + "\x80"} {
		if _, _, err := Marshal(CallFinished{Text: text}); err == nil || !strings.Contains(err.Error(), "not valid UTF-8") {
			t.Errorf("Marshal of %q: %v, want an error", text, err)
		}
		if _, err := MarshalState(State{Task: text}); err == nil {
			t.Errorf("MarshalState of %q: no error", text)
		}
	}
}

// FuzzUnmarshal: whatever can be read is written as it was understood.
func FuzzUnmarshal(f *testing.F) {
	for _, e := range kinds {
		for _, e := range []Event{e, filled(e)} {
			kind, payload, err := Marshal(e)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(kind, payload)
		}
	}
	f.Fuzz(func(t *testing.T, kind string, payload []byte) {
		e, err := Unmarshal(kind, start, payload)
		if err != nil {
			return
		}
		if _, _, err := Marshal(e); err != nil {
			return // a time past the year 9999
		}
		reread(t, e)
	})
}
