package playbook

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

var fence = regexp.MustCompile("(?ms)^```([a-z]+)(?: ([^\n]*))?\n(.*?)^```$")

// TestGuide checks the examples of docs/playbooks.md. A block that is named for
// a file is that file, and a playbook among them has no mistake; one that says
// `refused ID` gets a mistake from that check and no other.
func TestGuide(t *testing.T) {
	const file = "../docs/playbooks.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	head, rest, ok := strings.Cut(text, "<!-- step-type -->\n```text\n")
	_, tail, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatal("the guide has no place for step-type")
	}
	if want := head + "<!-- step-type -->\n```text\n" + StepType + "```\n" + tail; want != text {
		if !*update {
			t.Errorf("%s does not say what `stoplog explain step-type` says: run go test ./playbook -update", file)
		} else if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	project := fstest.MapFS{}
	refused := map[string]string{}
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		name, body := m[2], m[3]
		if id, ok := strings.CutPrefix(name, "refused "); ok {
			refused[id] = body
		} else if name != "" {
			project[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
			if corpus, ok := strings.CutSuffix(name, ".md"); ok {
				project[corpus+".corpus"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			}
		}
	}
	if len(project) < 10 || len(refused) == 0 {
		t.Fatalf("the guide has %d files and %d that are refused", len(project), len(refused))
	}
	for name, f := range project {
		if strings.HasSuffix(name, ".yaml") {
			_, found := Lint(name, f.Data, Options{Tree: project})
			for _, f := range found {
				t.Errorf("%s: %s (%s)", f.Severity, f.Diagnostic, f.Check)
			}
		}
	}
	for id, body := range refused {
		_, found := Lint("refused.yaml", []byte(body), Options{Tree: project})
		if len(found) != 1 || found[0].Check != id {
			t.Errorf("want one finding of %s, got %v", id, found)
		}
	}
}
