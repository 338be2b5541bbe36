package config

import "slices"

// rulePacks names the built-in packs of rules.
func rulePacks() []string { return []string{"secrets", "credentials", "pii"} }

// ruleIDs names the rules in them.
func ruleIDs() []string {
	return []string{
		"anthropic-api-key", "openai-api-key", "github-pat", "aws-access-token", "slack-bot-token",
		"stripe-access-token", "jwt", "private-key", "generic-api-key",
		"authorization-header", "url-credentials",
		"email", "credit-card", "us-ssn", "iban", "phone", "ipv4",
	}
}

// isRule says whether name is a pack or a rule.
func isRule(name string) bool {
	return slices.Contains(rulePacks(), name) || slices.Contains(ruleIDs(), name)
}
