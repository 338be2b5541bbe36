package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// beforeClaude is a gateway in front of a model that was written, at MODEL.
const beforeClaude = `version: 1
upstreams: {anthropic: {protocol: anthropic, base_url: "MODEL", zone: local}}
guards:
  secrets: {rules: [secrets, credentials], verdict: redact}
  pii:     {rules: [pii], verdict: deny}
profiles:
  default:
    extends: builtin
    upstream: [anthropic]
    models: ["*"]
    output: {secrets: enforce, pii: enforce}
gateway: {anthropic: default}
`

// TestClaude asks with claude -p, with an empty home and a made-up key, straight at
// the gateway. A denied answer is a refusal to it: it asks once more, and then says
// so in words of its own; it never has what was denied.
func TestClaude(t *testing.T) {
	if noNode != nil {
		t.Skip("no claude: ", noNode)
	}
	for name, c := range map[string]struct {
		says   []string
		result string // how what the user gets begins
		end    string // stop_reason
		failed bool
		never  string
	}{
		"text":     {end: "end_turn", says: []string{"A stoplog holds", " back water."}, result: "A stoplog holds back water."},
		"redacted": {end: "end_turn", says: []string{"The token is ", githubToken[:9], githubToken[9:], "."}, result: "The token is [redacted:github-pat].", never: githubToken[9:30]},
		"denied":   {says: []string{"Number on file: ", socialSecurity[:5], socialSecurity[5:], ". Keep it."}, result: "API Error: ", end: "refusal", failed: true, never: socialSecurity[4:]},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, []said{{pieces: c.says}})
			g := serve(t, strings.ReplaceAll(beforeClaude, "MODEL", m.server.URL))
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(claudeFolder(t), "claude"), "-p", "--output-format", "json", "--model", "claude-sonnet-4-5-20250929", "What is it?")
			cmd.Dir = t.TempDir()
			cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir(), "ANTHROPIC_BASE_URL="+g.url+"/anthropic", "ANTHROPIC_API_KEY="+madeUpKey,
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1")
			var out, talk bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &talk
			err := cmd.Run()
			var told struct {
				Result  string
				IsError bool   `json:"is_error"`
				End     string `json:"stop_reason"`
			}
			if parsed := json.Unmarshal(out.Bytes(), &told); parsed != nil {
				t.Fatalf("claude: %v, %v: %s\n%s", err, parsed, out.Bytes(), talk.Bytes())
			}
			if (err != nil) != c.failed || told.IsError != c.failed || told.End != c.end || !strings.HasPrefix(told.Result, c.result) {
				t.Errorf("claude: %v: %s\n%s", err, out.Bytes(), talk.Bytes())
			}
			if c.never != "" && strings.Contains(out.String()+talk.String(), c.never) {
				t.Errorf("claude has %q", c.never)
			}
			if m.asked() == 0 {
				t.Error("the model was not asked")
			}
			count(t)
		})
	}
}
