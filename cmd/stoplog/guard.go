package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

// guardName is what the findings of this command say for their guard: there is
// one, made of the rules that were named.
const guardName = "rules"

type guardCommand struct {
	Format  string   `enum:"text,ndjson" default:"text" help:"What stdin is: text, or ndjson with {\"text\":\"…\"} on every line."`
	Rules   []string `placeholder:"PACK|RULE" help:"The rules to run, by pack or by name. All of them if left out."`
	Verdict string   `enum:"redact,deny" default:"redact" help:"What a finding does: redact replaces it, deny ends the text before it."`
	Report  string   `placeholder:"FILE" help:"Write the findings there, one JSON object a line."`
	Key     string   `placeholder:"FILE" help:"The key of the fingerprints: the bytes of that file. A random one if left out."`
	Explain bool     `help:"Show which rules run and what each may hold back, and read nothing."`
}

func (*guardCommand) Help() string {
	return `Stdin is one text. What of it can no longer become part of a finding is written on at once; a finding is replaced by [redacted:RULE]. Only what may still become one waits: a few bytes, as a rule.

With --verdict deny the output ends before the first finding and one line on stderr says why; the exit code is 3. A text of which more than 1 MiB would have to wait is denied too.

A finding in the report is {"guard","rule","start","end","verdict","fingerprint"}: offsets in bytes of the text, and never what was found. Its fingerprint is the same for the same text under the same key; give --key to compare runs.

With --format ndjson each line is answered with one line, {"text":"<released now>","findings":[…]}, and the end with {"done":true,"text":"<the rest>","findings":[…],"bytes":N}. After a deny ("blocked":{"rule","start"}) the input is drained.

Examples:

    kubectl logs -f app | stoplog guard
    stoplog guard --rules secrets,email --report found.ndjson <app.log >clean.log
    git diff | stoplog guard --rules secrets --verdict deny >/dev/null || echo "secrets in the diff"
    stoplog guard --explain

Exit codes: 0 done, with findings or without; 3 something was denied; 1 an error, such as a line that is not ndjson; 2 usage.`
}

func (c *guardCommand) Run(w *world) error {
	selected, err := c.selectRules()
	if err != nil {
		return err
	}
	if c.Explain {
		return c.explain(w.stdout, selected)
	}
	key, err := c.readKey()
	if err != nil {
		return err
	}
	engine, err := match.Compile(selected, match.Options{Name: guardName, Evasions: match.Evasions, Key: key, Verdict: c.verdict()})
	if err != nil {
		return err
	}
	rep, err := openReport(c.Report)
	if err != nil {
		return err
	}
	chain := guard.NewChain(guard.Options{}, guard.Member{Guard: engine})
	filter := guard.NewFilter(chain.Open(context.Background(), guard.Channel{Name: "stdin"}))
	if c.Format == "ndjson" {
		err = filterNDJSON(w.stdin, w.stdout, filter, rep)
	} else {
		err = filterText(w.stdin, w.stdout, filter, rep)
	}
	if closed := rep.close(); err == nil {
		err = closed
	}
	return err
}

func (c *guardCommand) verdict() guard.Verdict {
	if c.Verdict == "deny" {
		return guard.Deny
	}
	return guard.Redact
}

// selectRules gives the rules that were named, or all of them.
func (c *guardCommand) selectRules() ([]match.Rule, error) {
	names := c.Rules
	if len(names) == 0 {
		names = rules.Default()
	}
	for _, name := range names {
		if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" || strings.ContainsRune(name, filepath.Separator) {
			return nil, failf(exitUsage, "own rule files can't be used yet: %s", name).
				hint("name packs or rules: `stoplog guard --explain` shows them")
		}
	}
	selected, err := rules.Select(names...)
	if err != nil {
		return nil, failf(exitUsage, "%w", err).hint("`stoplog guard --explain` shows all rules")
	}
	return selected, nil
}

// minKey is the least length of a key, in bytes: with a shorter one fingerprints
// of short secrets could be tried out.
const minKey = 16

func (c *guardCommand) readKey() ([]byte, error) {
	if c.Key == "" {
		key := make([]byte, 32)
		_, err := rand.Read(key)
		return key, err
	}
	key, err := os.ReadFile(c.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the fingerprints: %w", err)
	}
	if len(key) < minKey {
		return nil, failf(exitUsage, "the key of the fingerprints in %s has %d bytes, and %d are needed", c.Key, len(key), minKey).
			hint("make one with `head -c 32 /dev/urandom > %s`", c.Key)
	}
	return key, nil
}
