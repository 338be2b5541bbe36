package config

import (
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/rules"
)

// Names of what is built in. A profile extends builtinProfile unless it says
// otherwise; defaultProfile is that same policy, served where no file says what
// to serve.
const (
	builtinProfile = "builtin"
	defaultProfile = "default"
)

const (
	defaultListen  = "127.0.0.1:4180"
	defaultMaxBody = 32 << 20
	defaultMaxHold = 1 << 20
)

// Builtin is the configuration without a file. What is redacted in a request is
// put back in its answer: a placeholder that a coding agent writes back to a file
// would lose the secret.
func Builtin() *Config {
	return &Config{
		Listen:       defaultListen,
		MaxBodyBytes: defaultMaxBody,
		Upstreams: []Upstream{
			{Name: "openai", Protocol: OpenAI, BaseURL: "https://api.openai.com/v1", Zone: "external", Reach: defaultReach()},
			{Name: "anthropic", Protocol: Anthropic, BaseURL: "https://api.anthropic.com", Zone: "external", Reach: defaultReach()},
		},
		Guards: []Guard{
			{Name: "secrets", Rules: []string{"secrets", "credentials"}, Verdict: guard.Redact},
			{Name: "pii", Rules: []string{"pii"}, Verdict: guard.Redact},
			{Name: "disclosure", Rules: []string{Disclosure}, Verdict: guard.Redact},
			{Name: "injection", Rules: []string{rules.Injection}},
		},
		Profiles: []Profile{{
			Name:         defaultProfile,
			Upstreams:    []string{"openai", "anthropic"},
			Models:       []string{"*"},
			Input:        []Use{{"secrets", guard.Enforce, true}, {"injection", guard.Shadow, false}},
			Output:       []Use{{"secrets", guard.Enforce, false}, {"pii", guard.Shadow, false}, {"disclosure", guard.Shadow, false}},
			MaxHoldBytes: defaultMaxHold,
			Capture:      "redacted",
			DataClass:    "internal",
			Ceilings:     builtinCeilings(),
			Loop:         builtinLoop(),
		}},
		Gateway: Gateway{
			OpenAI:    Mount{Profile: defaultProfile, Choices: []string{defaultProfile}},
			Anthropic: Mount{Profile: defaultProfile, Choices: []string{defaultProfile}},
		},
	}
}
