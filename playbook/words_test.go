package playbook

import (
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		`./deploy --dry-run`:     {"./deploy", "--dry-run"},
		`a 'b c' "d e"`:          {"a", "b c", "d e"},
		`a b\ c "d\"e" 'f\'`:     {"a", "b c", `d"e`, `f\`},
		`a "" ''`:                {"a", "", ""},
		`a x'y z'"w"`:            {"a", "xy zw"},
		`a '$HOME' '*' "a|b"`:    {"a", "$HOME", "*", "a|b"},
		`a \$HOME \* "\$x" "\n"`: {"a", "$HOME", "*", "$x", `\n`},
		`a --x=1 b~`:             {"a", "--x=1", "b~"},
	} {
		p, err := Parse("f.yaml", []byte("playbook: p\nsteps:\n  - id: a\n    type: run\n    run: |\n      "+line+"\n"))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var got []string
		for _, w := range p.Steps[0].Work.(*Run).Argv {
			got = append(got, w.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
