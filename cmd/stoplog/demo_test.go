package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// madeUp is an example of a rule, in two halves.
const madeUp = "ghp_" + "Zk3vQ9xT2mB7nL5cR8wY1dF4hJ6pS0aG9uEt"

// writeCassette writes a cassette of one's own: what the models demo-secrets
// and demo-denied say, streamed and not.
func writeCassette(t *testing.T, says map[string][2]string) string {
	t.Helper()
	var b strings.Builder
	line := func(v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	line(map[string]any{"cassette": 1, "about": "a test's own", "source": "written"})
	exchange := func(model string, stream bool, kind, body string) {
		match := map[string]any{"model": model}
		if stream {
			match["stream"] = true
		}
		line(map[string]any{"request": map[string]any{"method": "POST", "path": "/v1/chat/completions", "match": match}})
		line(map[string]any{"response": map[string]any{"status": 200, "header": map[string]string{"content-type": kind}}})
		line(map[string]any{"ms": 0, "data": body})
		line(map[string]any{"end": true})
	}
	for _, model := range []string{"demo-secrets", "demo-denied"} {
		var frames strings.Builder
		for _, r := range says[model][0] {
			fmt.Fprintf(&frames, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", asJSON(string(r)))
		}
		frames.WriteString("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		exchange(model, true, "text/event-stream", frames.String())
		exchange(model, false, "application/json",
			`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":`+asJSON(says[model][1])+`},"finish_reason":"stop"}]}`)
	}
	file := filepath.Join(t.TempDir(), "own.cassette")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func asJSON(s string) string { b, _ := json.Marshal(s); return string(b) }

func runDemo(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, talk bytes.Buffer
	code = run(append([]string{"demo", "--fast"}, args...), strings.NewReader(""), &out, &talk, func(string) string { return "" })
	return code, out.String(), talk.String()
}

// The demo shows what the cassette says and nothing of its own.
func TestDemoShowsAnotherCassette(t *testing.T) {
	secret := "In this play the key is " + madeUp + ", and Zanzibar is far."
	denied := "The number of the Walrus is 536-22-8714, he said."
	file := writeCassette(t, map[string][2]string{"demo-secrets": {secret, secret}, "demo-denied": {denied, denied}})
	code, out, talk := runDemo(t, "--cassette", file)
	if code != exitDone {
		t.Fatalf("exit %d: %s\n%s", code, talk, out)
	}
	for _, want := range []string{
		"In this play the key is |held 40|[redacted:github-pat], and Zanzibar is far.",
		"In this play the key is [redacted:github-pat], and Zanzibar is far.",
		"The same words, end and outcome: 67 bytes streamed, 67 unstreamed.",
		"The number of the Walrus is \n\n   finish_reason content_filter, stoplog status=guardrail_blocked guard=people rule=us-ssn",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not show %q:\n%s", want, out)
		}
	}
	for _, never := range []string{madeUp, "536-22-8714", "What is on file"} {
		if strings.Contains(out, never) {
			t.Errorf("the demo shows %q:\n%s", never, out)
		}
	}
}

// What the demo says it shows it has seen: with a cassette that does not bear
// it out it fails.
func TestDemoCanFail(t *testing.T) {
	fine := "A key: " + madeUp
	number := "It is 536-22-8714."
	for name, tt := range map[string]struct {
		says map[string][2]string
		want string
	}{
		"streamed and unstreamed differ": {map[string][2]string{"demo-secrets": {fine, fine + " and more"}, "demo-denied": {number, number}},
			"the streamed and the unstreamed answer differ"},
		"nothing to deny": {map[string][2]string{"demo-secrets": {fine, fine}, "demo-denied": {"It is nothing.", "It is nothing."}},
			"should have been denied was not"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, talk := runDemo(t, "--cassette", writeCassette(t, tt.says))
			if code != exitError || !strings.Contains(talk, tt.want) {
				t.Errorf("exit %d, said %q\n%s", code, talk, out)
			}
		})
	}
}

func TestDemoJSON(t *testing.T) {
	code, out, talk := runDemo(t, "--json")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, talk)
	}
	var d struct {
		Streamed, Unstreamed struct {
			Text    string
			Stoplog struct{ Status, Rule string }
		}
		Equal bool
		Held  struct {
			Replaced int64 `json:"replaced_bytes"`
		}
		Denied struct {
			Finish string `json:"finish_reason"`
		}
		Records []struct{ Kind, Run string }
		Agent   struct {
			Approved      bool
			First, Second struct{ Status, Reason, Message string }
			Verified      []struct{ Whole bool }
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	runs := map[string][]string{}
	for _, r := range d.Records {
		runs[r.Run] = append(runs[r.Run], r.Kind)
	}
	if !d.Equal || d.Streamed.Text != d.Unstreamed.Text || !strings.Contains(d.Streamed.Text, "[redacted:") ||
		d.Streamed.Stoplog.Status != "redacted" || d.Denied.Finish != "content_filter" || d.Held.Replaced < 20 || len(runs) != 3 {
		t.Errorf("%+v", d)
	}
	if a := d.Agent; !a.Approved || a.First.Status != "completed" || a.Second.Status != "guardrail_blocked" || a.Second.Reason != "stalled" ||
		!strings.HasPrefix(a.Second.Message, "Stopped: ") || len(a.Verified) < 10 {
		t.Errorf("the agent: %+v", a)
	}
	for run, kinds := range runs {
		if kinds[0] != "started" || kinds[1] != "verdict" || kinds[len(kinds)-1] != "settled" {
			t.Errorf("%s: %v", run, kinds)
		}
	}
}

// The agent's model is never sent the secret in the file: its cassette answers
// only if the placeholder is in the request, and nothing that is shown has more.
func TestDemoAgent(t *testing.T) {
	code, out, talk := runDemo(t)
	if code != exitDone {
		t.Fatalf("exit %d: %s\n%s", code, talk, out)
	}
	token, err := exampleToken()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out+talk, token) {
		t.Error("the demo shows the token")
	}
	for _, want := range []string{
		"tool   read_file: REGION=eu-west-1 ⏎ REPLICAS=3 ⏎ TOKEN=[redacted:github-pat]",
		"asks   run_command {\"argv\":[\"wc\",\"-l\",\"deploy.env\"]}",
		"tool   run_command: 3 deploy.env",
		"Stopped: the same calls gave the same results 3 times over. What ran: 3 tool calls (read_file ×3). Nothing further will run.",
		"audit verify: 12 of 12 chains are whole",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not show %q:\n%s", want, out)
		}
	}
}

// What the README shows of the demo is what the demo shows, but for names of
// runs and what depends on the clock.
func TestReadmeShowsTheDemo(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, out, _ := runDemo(t)
	varies := regexp.MustCompile(`run_\w+|[0-9.]+ bytes waited on average, \d+ at most`)
	shown := varies.ReplaceAllString(out, "…")
	blocks := strings.Split(string(page), "```\n")
	lines := 0
	for _, at := range []string{"export ANTHROPIC_API_KEY", "finish_reason content_filter", "Let me count the lines"} {
		i := slices.IndexFunc(blocks, func(b string) bool { return strings.Contains(b, at) })
		if i < 0 {
			t.Fatalf("README.md does not show %q", at)
		}
		for line := range strings.SplitSeq(varies.ReplaceAllString(blocks[i], "…"), "\n") {
			lines++
			if !strings.Contains(shown, line) {
				t.Errorf("README.md shows %q, the demo does not", line)
			}
		}
	}
	if lines < 10 {
		t.Errorf("only %d lines of the demo are in README.md", lines)
	}
}
