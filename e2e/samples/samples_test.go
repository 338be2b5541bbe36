package samples

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the version whose rules guard/rules/gitleaks has.
const module = "github.com/zricethezav/gitleaks/v8@v8.30.1"

// mostApart is how many samples in a hundred the two may judge apart. Each rule of
// those has its reason below.
const mostApart = 2

// apart are the rules that judge a sample of gitleaks otherwise, and why.
var apart = map[string]string{
	"anthropic-api-key":        "ours finds administrators' keys too, which have a rule of their own there",
	"aws-access-token":         "gitleaks spares what ends in EXAMPLE; a stream that has one may have it from anywhere",
	"curl-auth-header":         "ours takes any value of such a header, also a token that is called Basic",
	"freemius-secret-key":      "gitleaks looks at the name of the file, and a stream has none",
	"generic-api-key":          "ours is another pattern: it wants a name that says secret, a digit, and no word list",
	"hashicorp-tf-password":    "gitleaks looks at the name of the file, and a stream has none",
	"kubernetes-secret-yaml":   "mended: an allow list on the match is left out, since the match begins long before what is redacted",
	"nuget-config-password":    "gitleaks looks at the name of the file, and a stream has none",
	"sourcegraph-access-token": "mended: a bare number of 40 digits is a commit's name",
}

// leftOut are the rules of gitleaks that ours do not have: they look at names of
// files alone.
var leftOut = []string{"pkcs12-file"}

// parts are the rules of gitleaks that are two of ours.
var parts = map[string]string{
	"atlassian-api-token":    "atlassian-api-token,atlassian-api-token-v3",
	"kubernetes-secret-yaml": "kubernetes-secret-yaml,kubernetes-secret-yaml-data-first",
}

// sample is a text and what gitleaks takes for secrets in it.
type sample struct {
	Rule, Path, Text string
	Secrets          []string
}

// judge says how ours and theirs differ about a sample of which out is left; empty:
// they agree.
func (s sample) judge(out string) string {
	switch {
	case len(s.Secrets) == 0 && out != s.Text:
		return "ours finds something"
	case slices.ContainsFunc(s.Secrets, func(secret string) bool { return strings.Contains(out, secret) }):
		return "ours leaves a secret"
	}
	return ""
}

// TestSamples holds ours against theirs, on every sample of every rule.
func TestSamples(t *testing.T) {
	byRule := gitleaks(t)
	program := build(t)
	total, differ, seen := 0, 0, map[string]bool{}
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		samples := byRule[rule]
		if slices.Contains(leftOut, rule) {
			continue
		}
		total += len(samples)
		for i, out := range together(t, program, rule, samples) {
			s := samples[i]
			if s.judge(out) == "" {
				continue
			}
			// Beside others a text may end otherwise than alone.
			why := s.judge(redact(t, program, rule, s.Text))
			if why == "" {
				continue
			}
			differ++
			seen[rule] = true
			if apart[rule] == "" {
				t.Errorf("%s: %s, and no reason is given: %q, theirs %q", rule, why, s.Text, s.Secrets)
			} else {
				t.Logf("%s: %s (%s): %.120q", rule, why, apart[rule], s.Text)
			}
		}
	}
	t.Logf("%d samples of %d rules; %d are judged apart, %.2f %%", total, len(byRule), differ, 100*float64(differ)/float64(total))
	if len(byRule) < 200 || total < 5000 {
		t.Errorf("%d samples of %d rules are not all that gitleaks has", total, len(byRule))
	}
	if 100*differ > mostApart*total {
		t.Errorf("more than %d in a hundred are judged apart", mostApart)
	}
	for rule := range apart {
		if !seen[rule] {
			t.Errorf("%s agrees with gitleaks on all samples: its reason is not needed", rule)
		}
	}
}

// between parts two samples: more than any rule reads across.
var between = " ~\n" + strings.Repeat(strings.Repeat("~ ", 30)+"\n", 16)

// together redacts samples in one run of the program; alone, if a match reaches
// from one into what parts it from the next.
func together(t *testing.T, program, rule string, samples []sample) []string {
	t.Helper()
	var text strings.Builder
	for _, s := range samples {
		text.WriteString(s.Text + between)
	}
	outs := strings.Split(redact(t, program, rule, text.String()), between)
	if len(outs) == len(samples)+1 {
		return outs[:len(samples)]
	}
	outs = outs[:0]
	for _, s := range samples {
		outs = append(outs, redact(t, program, rule, s.Text))
	}
	return outs
}

// redact runs the program over a text.
func redact(t *testing.T, program, rule, text string) string {
	t.Helper()
	names := rule
	if p := parts[rule]; p != "" {
		names = p
	}
	cmd := exec.Command(program, "guard", "--rules", names)
	cmd.Stdin = strings.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("stoplog guard --rules %s: %v\n%s", names, err, stderr.String())
	}
	return string(out)
}

func build(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "stoplog")
	cmd := exec.Command("go", "build", "-o", out, "./cmd/stoplog")
	cmd.Dir = filepath.Join("..", "..")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build stoplog: %v\n%s", err, said)
	}
	return out
}

// gitleaks returns the samples by rule. Where its module cannot be had the test is
// skipped, but not in CI.
func gitleaks(t *testing.T) map[string][]sample {
	t.Helper()
	lacking := t.Skipf
	if os.Getenv("CI") == "true" {
		lacking = t.Fatalf
	}
	said, err := exec.Command("go", "mod", "download", "-json", module).Output()
	var got struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(said, &got); err != nil || jsonErr != nil || got.Dir == "" {
		lacking("the module %s cannot be had: %v %s", module, err, got.Error)
	}
	dir := filepath.Join(t.TempDir(), "gitleaks")
	if err := copyModule(dir, got.Dir); err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile(filepath.Join("testdata", "validate.go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "cmd", "generate", "config")
	if err := os.WriteFile(filepath.Join(config, "utils", "validate.go"), ours, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", "-trimpath", "-mod=mod", ".", filepath.Join(dir, "out.toml"))
	cmd.Dir = config
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		lacking("gitleaks cannot be built: %v\n%s", err, stderr.String())
	}
	byRule := map[string][]sample{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("gitleaks says %.100q: %v", lines.Text(), err)
		}
		byRule[s.Rule] = append(byRule[s.Rule], s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return byRule
}

// copyModule copies the source of a module to where it can be written to.
func copyModule(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("copy gitleaks: %w", err)
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600)
	})
}
