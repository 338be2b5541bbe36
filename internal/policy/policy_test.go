package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/internal/tool"
)

var clauses = []Rule{
	{"run_command", []Clause{
		{Deny, `args.argv[0] in ["rm", "dd"]`},
		{RequireApproval, `size(args.argv) > 3 || args.argv.exists(a, a.startsWith("--force"))`},
		{Allow, ""},
	}},
	{"write", []Clause{{Allow, `args.path.startsWith("tmp/") && !args.path.contains("..")`}, {RequireApproval, `args.size < 100`}}},
	{"mcp__*", []Clause{{RequireApproval, ""}}},
	{"mcp__mail__*", []Clause{{Deny, ""}}},
	{"mcp__mail__read", []Clause{{Allow, ""}}},
	{"slow", []Clause{{Allow, `args.l.all(a, args.l.all(b, args.l.all(c, a + b + c > 0)))`}}},
	{"dyn", []Clause{{Allow, `args.ok`}}},
}

// TestCalls: the first clause that holds decides, and what cannot be decided is
// denied.
func TestCalls(t *testing.T) {
	c, err := Compile(clauses)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tool, args string
		want       Ruling
	}{
		{"read", `{}`, Allow}, // no rule
		{"run_command", `{"argv":["ls"]}`, Allow},
		{"run_command", `{"argv":["rm","-rf","/"]}`, Deny},
		{"run_command", `{"argv":["\u0072m"]}`, Deny},
		{"run_command", `{"argv":["git","push","--force-with-lease"]}`, RequireApproval},
		{"run_command", `{"argv":["a","b","c","d"]}`, RequireApproval},
		// What cannot be evaluated, or could be read in two ways.
		{"run_command", ``, Deny},
		{"run_command", `{"argv":[]}`, Deny},
		{"run_command", `{"argv":"ls"`, Deny},
		{"run_command", `{"argv":["ls"]} {}`, Deny},
		{"run_command", `{"argv":["ls"],"argv":["rm"]}`, Deny},
		{"run_command", `{"argv":["ls"],"ARGV":["rm"]}`, Deny},
		{"run_command", `{"argv":["ls"],"x":{"a":1,"b":[{"c":1},{"c":2}]}}`, Allow},
		{"run_command", `{"argv":["ls"],"x":[{"a":1,"A":2}]}`, Deny},
		{"run_command", `["rm"]`, Deny},
		{"run_command", `null`, Deny},
		{"write", `{"path":"tmp/a"}`, Allow},
		{"write", `{"path":"tmp/../a","size":99}`, RequireApproval},
		{"write", `{"path":"etc","size":99.5}`, RequireApproval},
		{"write", `{"path":"etc","size":100}`, Deny}, // no clause holds
		{"write", `{"path":7}`, Deny},
		{"dyn", `{"ok":true}`, Allow},
		{"dyn", `{"ok":"true"}`, Deny},
		// The name, or else the longest pattern.
		{"mcp__files__list", `not read`, RequireApproval},
		{"mcp__mail__send", ``, Deny},
		{"mcp__mail__read", ``, Allow},
		{"slow", `{"l":[1,2,3]}`, Allow},
		{"slow", `{"l":[` + strings.Repeat("1,", 300) + `1]}`, Deny}, // it costs too much
	} {
		if got := c.Judge(tt.tool, []byte(tt.args)); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.tool, tt.args, got, tt.want)
		}
	}
	for name, want := range map[string]bool{"read": false, "run_command": true, "mcp__mail__read": false, "mcp__x": true, "dyn": true} {
		if got := c.MayStop(name); got != want {
			t.Errorf("%s may be stopped: %v", name, got)
		}
	}
	var none *Calls
	if none.MayStop("x") || none.Has("x") || none.Judge("x", nil) != Allow {
		t.Error("no rules judge")
	}
}

func TestCompileRefuses(t *testing.T) {
	for when, want := range map[string]string{
		`args.`:            "rule 1, clause 2: at 1:6: Syntax error",
		`args.a + "b"`:     "", // dynamic: may be a bool
		`1 + 1`:            "rule 1, clause 2: at 1:1: it is a int, want true or false",
		`argv.size() == 1`: "rule 1, clause 2: at 1:1: undeclared reference to 'argv'",
		strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200): "rule 1, clause 2: at ",
		`args.a == "` + strings.Repeat("x", 5000) + `"`:              "rule 1, clause 2: at ",
		`true &&` + "\n" + `  foo(args)`:                             "rule 1, clause 2: at 2:6: undeclared reference to 'foo'",
	} {
		_, err := Compile([]Rule{{"a", nil}, {"b", []Clause{{Allow, "true"}, {}, {Deny, when}}}})
		var wrong *ClauseError
		if want == "" && err == nil {
			continue
		}
		if !errors.As(err, &wrong) || wrong.Rule != 1 || wrong.Clause != 2 || !strings.HasPrefix(wrong.Error(), strings.Replace(want, "rule 1, clause 2", "rule 2, clause 3", 1)) {
			t.Errorf("%q: %v, want %s", when, err, want)
		}
	}
}

func TestRulings(t *testing.T) {
	for _, r := range []Ruling{Allow, RequireApproval, Deny} {
		if got, err := ParseRuling(r.String()); got != r || err != nil {
			t.Errorf("%s is read as %s, %v", r, got, err)
		}
	}
	if r, err := ParseRuling("redact"); r != Deny || err == nil {
		t.Errorf("redact is read as %s", r)
	}
}

// TestCeilings pins which class may reach which zone, and that the worst counts.
func TestCeilings(t *testing.T) {
	c := DefaultCeilings()
	want := map[Zone]tool.Class{Local: tool.Secret, Private: tool.Personal, External: tool.Internal}
	for zone, most := range want {
		for class := tool.Public; class <= tool.Secret; class++ {
			if got := c.Admits(class, zone); got != (class <= most) {
				t.Errorf("%s to %s: %v", class, zone, got)
			}
		}
		if got, err := ParseZone(zone.String()); got != zone || err != nil {
			t.Errorf("%s is read as %s, %v", zone, got, err)
		}
	}
	if c.Admits(tool.Personal, Private, External) || !c.Admits(tool.Personal, Private, Local) {
		t.Error("it is not the worst zone that counts")
	}
	if c.Admits(tool.Public) || c.Admits(0, Local) || (Ceilings{}).Admits(tool.Public, Local) {
		t.Error("what is not known is admitted")
	}
	if Worst(Private, Local) != Private || Worst(Private, External, Local) != External {
		t.Error("the worst is another")
	}
	if z, err := ParseZone("moon"); z != External || err == nil {
		t.Errorf("a zone that is none is %s", z)
	}
}

// FuzzJudge: what is allowed is what a tool that reads it does, also one that
// folds the case of members.
func FuzzJudge(f *testing.F) {
	for _, args := range []string{`{"argv":["ls"]}`, `{"a":{"A":1,"a":2}}`, `[`, ``, "\xff", `{"argv":["ls"],"\u0061rgv":["rm"]}`, `{"argv":["ls"],"aRgv":["rm"]}`} {
		f.Add(args)
	}
	c, err := Compile(clauses)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		if c.Judge("run_command", []byte(args)) != Allow {
			return
		}
		var call struct{ Argv []any }
		if err := json.Unmarshal([]byte(args), &call); err != nil || len(call.Argv) == 0 || len(call.Argv) > 3 || call.Argv[0] == "rm" || call.Argv[0] == "dd" {
			t.Errorf("allowed %q, which is read as %v, %v", args, call.Argv, err)
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	c, err := Compile(clauses)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if c.Judge("run_command", []byte(`{"argv":["git","push"]}`)) != Allow {
			b.Fatal("not allowed")
		}
	}
}
