package config

import (
	"slices"
	"strings"

	"github.com/stoplog/stoplog/internal/diag"
)

// A shape is what one kind of mapping may hold.
type shape struct {
	what string   // in messages: "a profile"
	path string   // where such a mapping stands in the file
	keys []string // in the order of the documentation
	// later are keys of the format that this version has no use for, each with
	// what is missing. To accept one would be to promise what is not done.
	later map[string]string
}

var (
	fileShape = shape{
		what: "the file", path: "the top level",
		keys: []string{"version", "listen", "require_keys", "tls", "store", "seal", "max_body_bytes", "rules", "upstreams", "guards", "profiles", "gateway", "budgets", "rates", "prices", "tickets"},
	}
	ratesShape = shape{
		what: "rates", path: "rates",
		keys: []string{"keys", "teams", "apps", "users"},
	}
	rateShape = shape{
		what: "a rate", path: "rates.KIND.NAME",
		keys: []string{"requests", "tokens"},
	}
	tlsShape = shape{
		what: "tls", path: "tls",
		keys: []string{"cert", "key"},
	}
	upstreamShape = shape{
		what: "an upstream", path: "upstreams.NAME",
		keys: []string{"protocol", "base_url", "key", "zone", "headers", "proxy", "ca", "timeouts", "retries", "azure", "cassettes", "pace"},
	}
	keyShape = shape{
		what: "a key", path: "upstreams.NAME.key",
		keys: []string{"command"},
	}
	timeoutsShape = shape{
		what: "timeouts", path: "upstreams.NAME.timeouts",
		keys: []string{"connect", "header", "idle"},
	}
	azureShape = shape{
		what: "azure", path: "upstreams.NAME.azure",
		keys: []string{"api_version", "deployments"},
	}
	guardShape = shape{
		what: "a guard", path: "guards.NAME",
		keys: []string{"rules", "literals", "llm_judge", "http", "verdict", "class"},
	}
	judgeShape = shape{
		what: "llm_judge", path: "guards.NAME.llm_judge",
		keys: []string{"profile", "rules", "pace", "timeout", "ahead", "in_flight", "retries"},
	}
	serviceShape = shape{
		what: "http", path: "guards.NAME.http",
		keys: []string{"url", "key", "pace", "timeout", "ahead", "in_flight", "retries"},
	}
	profileShape = shape{
		what: "a profile", path: "profiles.NAME",
		keys: []string{
			"extends", "upstream", "model", "models", "system", "tools", "input", "output",
			"enforced_signals", "limits", "max_hold_bytes", "max_rule_hold_bytes", "capture", "approvals",
			"budget", "reserve_tokens", "data_class", "ceilings", "calls", "media",
		},
	}
	ceilingsShape = shape{
		what: "ceilings", path: "profiles.NAME.ceilings",
		keys: []string{"local", "private", "external"},
	}
	budgetsShape = shape{
		what: "budgets", path: "budgets",
		keys: []string{"day", "models", "playbooks", "keys", "teams", "apps", "users"},
	}
	budgetFileShape = shape{
		what: "the file", path: "the top level",
		keys: append([]string{"version"}, budgetsShape.keys...),
	}
	limitShape = shape{
		what: "a budget", path: "profiles.NAME.budget",
		keys: []string{"tokens", "usd"},
	}
	priceShape = shape{
		what: "a price", path: "prices.NAME",
		keys: []string{"input", "output", "cache_read", "cache_write", "cache_write_1h"},
	}
	limitsShape = shape{
		what: "limits", path: "profiles.NAME.limits",
		keys: []string{"max_iterations", "timeout_seconds", "stall_limit", "malformed_limit", "tool_error_limit"},
	}
	mediaShape = shape{
		what: "media", path: "profiles.NAME.media",
		keys: []string{"images", "audio", "files"},
	}
	approvalsShape = shape{
		what: "approvals", path: "profiles.NAME.approvals",
		keys: []string{"expire", "second_person"},
	}
	sealShape = shape{
		what: "seal", path: "seal",
		keys: []string{"key"},
	}
	gatewayShape = shape{
		what: "the gateway", path: "gateway",
		keys: []string{OpenAI, Anthropic},
	}
	ruleFileShape = shape{
		what: "the file", path: "the top level",
		keys: []string{"version", "rules"},
	}
	ruleShape = shape{
		what: "a rule", path: "rules",
		keys: []string{"id", "pattern", "group", "validators", "severity", "verdict", "match", "no_match"},
	}
	// shapes are those of a configuration.
	shapes = []shape{fileShape, tlsShape, upstreamShape, keyShape, timeoutsShape, azureShape, guardShape, judgeShape, serviceShape, profileShape, ceilingsShape, limitsShape, mediaShape, approvalsShape, sealShape, gatewayShape, budgetsShape, ratesShape, rateShape, limitShape, priceShape, ticketsShape, githubShape, webhookShape}
)

// members gives those members of a mapping that its shape knows, each key once,
// and reports the others; flawed says that something is reported.
func (d decoder) members(n node, s shape) (known []member, flawed bool) {
	if !d.is(n, mapping, s.what) {
		return nil, true
	}
	before := len(d.List)
	for _, m := range d.unique(n.Members) {
		switch missing, later := s.later[m.Key]; {
		case slices.Contains(s.keys, m.Key):
			known = append(known, m)
		case later:
			d.Errorf(m.Span, "remove it", "%q is not in this version: %s", m.Key, missing)
		default:
			d.unknown(m, s)
		}
	}
	return known, n.Flawed || len(d.List) > before
}

// unique leaves out the members whose key stood before, and reports them.
func (d decoder) unique(members []member) []member {
	first := map[string]diag.Span{}
	var once []member
	for _, m := range members {
		if at, ok := first[m.Key]; ok {
			d.Errorf(m.Span, "keep one", "key %q is set twice, first on line %d", m.Key, at.Line)
			continue
		}
		first[m.Key] = m.Span
		once = append(once, m)
	}
	return once
}

// unknown reports a key that the shape does not have: misspelt, in the wrong
// place, or neither.
func (d decoder) unknown(m member, s shape) {
	hint := "the keys here are " + strings.Join(s.keys, ", ")
	if near := diag.Suggest(m.Key, s.keys); near != "" {
		d.Errorf(m.Span, didYouMean(near)+" "+hint, "unknown key %q in %s", m.Key, s.what)
		return
	}
	for _, other := range shapes {
		if slices.Contains(other.keys, m.Key) || other.later[m.Key] != "" {
			d.Errorf(m.Span, hint, "%q does not belong in %s: it is a key of %s", m.Key, s.what, other.path)
			return
		}
	}
	d.Errorf(m.Span, hint, "unknown key %q in %s", m.Key, s.what)
}

func didYouMean(name string) string { return `did you mean "` + name + `"?` }
