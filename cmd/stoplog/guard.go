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
	"github.com/stoplog/stoplog/internal/config"
)

// guardName is what the findings of this command say for their guard: there is
// one, made of the rules that were named.
const guardName = "rules"

type guardCommand struct {
	Format  string   `enum:"text,ndjson" default:"text" help:"What stdin is: text, or ndjson with {\"text\":\"…\"} on every line."`
	Rules   []string `placeholder:"PACK|RULE|FILE" help:"The rules to run, by pack, by name, or those of a rule file. Every pack but injection if left out."`
	Verdict string   `enum:"rule,redact,deny" default:"rule" help:"What a finding does: redact replaces it, deny ends the text before it, rule does what its rule says: of those that are built in, redact."`
	Report  string   `placeholder:"FILE" help:"Write the findings there, one JSON object a line."`
	Key     string   `placeholder:"FILE" help:"The key of the fingerprints: the bytes of that file. A random one if left out."`
	Explain bool     `help:"Show which rules run and what each may hold back, and read nothing."`
}

func (*guardCommand) Help() string {
	return `Stdin is one text. What of it can no longer become part of a finding is written on at once; a finding is replaced by [redacted:RULE]. Only what may still become one waits: a few bytes, as a rule.

With --verdict deny the output ends before the first finding and one line on stderr says why; the exit code is 3. A text of which more than 1 MiB would have to wait is denied too.

A rule file has rules of your own: {version: 1, rules: [{id, pattern, match: […]}]}, and with each, if you want, group, validators, severity, verdict and no_match. Patterns are in the syntax of RE2. A pattern that does not parse or an example that fails is an error with its place.

A finding in the report is {"guard","rule","start","end","verdict","fingerprint"}: offsets in bytes of the text, and never what was found. Its fingerprint is the same for the same text under the same key; give --key to compare runs.

With --format ndjson each line is answered with one line, {"text":"<released now>","findings":[…]}, and the end with {"done":true,"text":"<the rest>","findings":[…],"bytes":N}. After a deny ("blocked":{"rule","start"}) the input is drained.

Examples:

    kubectl logs -f app | stoplog guard
    stoplog guard --rules secrets,email --report found.ndjson <app.log >clean.log
    stoplog guard --rules secrets,rules/acme.yaml <app.log
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
	switch c.Verdict {
	case "deny":
		return guard.Deny
	case "redact":
		return guard.Redact
	}
	return guard.Allow // each rule's own
}

// verdictOf is what a finding of a rule does.
func (c *guardCommand) verdictOf(r match.Rule) guard.Verdict {
	if v := c.verdict(); v != guard.Allow {
		return v
	}
	return r.Verdict
}

// selectRules gives the rules that were named, or all of them.
func (c *guardCommand) selectRules() ([]match.Rule, error) {
	names := c.Rules
	if len(names) == 0 {
		names = rules.Default()
	}
	var own rules.Library
	for i, name := range names {
		if ext := filepath.Ext(name); ext != ".yaml" && ext != ".yml" && !strings.ContainsRune(name, filepath.Separator) {
			continue
		}
		pack, err := config.LoadRules(name)
		if err != nil {
			return nil, failf(exitUsage, "%w", err)
		}
		own, names[i] = append(own, pack.Own), pack.Name
	}
	if err := own.Check(); err != nil {
		return nil, failf(exitUsage, "%w", err)
	}
	selected, err := own.Select(names...)
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
