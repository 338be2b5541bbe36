package gitleaks

import (
	"maps"
	"slices"
	"strings"
)

// A mend says what is changed in a rule, why, and what that makes of a text.
type mend struct {
	why string
	// patterns replace the rule's, by the ids of the rules that it becomes.
	patterns map[string]string
	// finds and spares are texts that are found, or not, because of it.
	finds, spares []string
}

// apply makes the rules that an entry becomes.
func (m mend) apply(e entry) []entry {
	var out []entry
	for _, id := range slices.Sorted(maps.Keys(m.patterns)) {
		part := e
		part.id, part.regex, part.group = id, m.patterns[id], 0
		out = append(out, part)
	}
	return out
}

// Mends returns why rules of gitleaks are changed, by id.
func Mends() map[string]string {
	out := make(map[string]string)
	for id, m := range mends {
		out[id] = m.why
	}
	return out
}

// ends is what gitleaks wants behind a secret.
const ends = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)"

// assigned is what gitleaks wants between a keyword and a secret.
const assigned = "(?:[ \\t\\w.-]{0,20})[\\s'\"]{0,3}(?:=|>|:{1,3}=|\\|\\||:|=>|\\?=|,)[\\x60'\"\\s=]{0,5}"

var hex40 = strings.Repeat("0a1b2c3d", 5)

var mends = map[string]mend{
	"hashicorp-tf-api-token": {
		why: "Its first 14 letters are those of any word, each of which was held. A token is now redacted from its literal on; " +
			"what stands before is its identifier. It stands at a word, and it goes whole.",
		patterns: map[string]string{
			"hashicorp-tf-api-token": `(?i)\b[a-z0-9]{14}\.((?-i:atlasv1)\.[a-z0-9\-_=]{60,})`,
		},
		finds: []string{"token A1b2C3d4E5f6G7." + "atlasv1." + "q9Zr4Tn7Lw2Xk8Vb5Mc1q9Zr4Tn7Lw2Xk8Vb5Mc1q9Zr4Tn7Lw2Xk8Vb5Mc1q9Zr4"},
	},
	"sourcegraph-access-token": {
		why: "One of its branches is 40 hexadecimal digits: every commit's name. Gitleaks asks for a keyword elsewhere in the file.",
		patterns: map[string]string{
			"sourcegraph-access-token": `(?i)\b(sgp_(?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40})\b`,
		},
		finds:  []string{"SRC_ACCESS_TOKEN=sgp_" + hex40, "sgp_local_" + hex40 + ","},
		spares: []string{"commit " + hex40, "sourcegraph at " + hex40 + "\n"},
	},
	"azure-ad-client-secret": {
		why: "Its first three letters are those of any word, each of which was held. It is redacted from its digit on; 37 of 40 letters are.",
		patterns: map[string]string{
			"azure-ad-client-secret": "(?:^|[\\\\'\"\\x60\\s>=:(,)])[a-zA-Z0-9_~.]{3}(\\dQ~[a-zA-Z0-9_~.-]{31,34})(?:$|[\\\\'\"\\x60\\s<),])",
		},
		finds: []string{"secret: Abc" + "8Q~" + "q9Zr4Tn7Lw2Xk8Vb5Mc1q9Zr4Tn7Lw2Xk"},
	},
	"maxmind-license-key": {
		why: "Its first six letters are those of any word, each of which was held. It is redacted from its first underscore on.",
		patterns: map[string]string{
			"maxmind-license-key": `\b[A-Za-z0-9]{6}(_[A-Za-z0-9]{29}_mmk)` + ends,
		},
		finds: []string{"license w5fruZ" + "_8ZUsgzLRdzsemEEAA7bIcTmMqEGb4" + "_mmk"},
	},
	"facebook-access-token": {
		why: "It begins with any 15 digits, which were held, and asks for a keyword elsewhere in the file. The digits are an application's " +
			"public number; what follows them is redacted.",
		patterns: map[string]string{
			"facebook-access-token": `(?i)\b\d{15,16}((?:\||%)[0-9a-z\-_]{27,40})` + ends,
		},
		finds: []string{"access_token=123456789012345" + "|" + "q9Zr4Tn7Lw2Xk8Vb5Mc1q9Zr4Tn"},
	},
	"airtable-personnal-access-token": {
		why: "It asks for a keyword elsewhere in the file. Its shape says enough.",
		patterns: map[string]string{
			"airtable-personnal-access-token": `\b(pat[[:alnum:]]{14}\.[a-f0-9]{64})\b`,
		},
		finds: []string{"key pat" + "q9Zr4Tn7Lw2Xk8" + "." + strings.Repeat("0a1b2c3d", 8)},
	},
	"microsoft-teams-webhook": {
		why: "Its first group is a part of an identifier: all but five letters of the address would be left.",
		patterns: map[string]string{
			"microsoft-teams-webhook": `(https://[a-z0-9]+\.webhook\.office\.com/webhookb2/[a-z0-9]{8}-(?:[a-z0-9]{4}-){3}[a-z0-9]{12}@[a-z0-9]{8}-(?:[a-z0-9]{4}-){3}[a-z0-9]{12}` +
				`/IncomingWebhook/[a-z0-9]{32}/[a-z0-9]{8}-(?:[a-z0-9]{4}-){3}[a-z0-9]{12})`,
		},
		finds: []string{"post to " + teamsWebhook},
	},
	"jwt-base64": {
		why: "Its first group that is not empty names a field of the header: the token itself would be left.",
		patterns: map[string]string{
			"jwt-base64": `\b(ZXlK(?:aGJHY2lPaU|aGNIVWlPaU|aGNIWWlPaU|aGRXUWlPaU|aU5qUWlP|amNtbDBJanBi|amRIa2lPaU|bGNHc2lPbn|bGJtTWlPaU|cWEzVWlPaU|cWQyc2lPb|` +
				`cGMzTWlPaU|cGRpSTZJ|cmFXUWlP|clpYbGZiM0J6SWpwY|cmRIa2lPaUp|dWIyNWpaU0k2|d01tTWlP|d01uTWlPaU|d2NIUWlPaU|emRXSWlPaU|emRuUWlP|MFlXY2lPaU|` +
				`MGVYQWlPaUp|MWNtd2l|MWMyVWlPaUp|MlpYSWlPaU|MlpYSnphVzl1SWpv|NElqb2|NE5XTWlP|NE5YUWlPaU|NE5YUWpVekkxTmlJNkl|NE5YVWlPaU|NmFYQWlPaU)` +
				`[a-zA-Z0-9/\\_+\-\r\n]{40,}={0,2})`,
		},
		finds: []string{"ZXlK" + "aGJHY2lPaUpJVXpJMU5pSXNJblI1Y0NJNklrcFhWQ0o5LmV5SnpkV0lpT2lJeE1qTTBOVFkzT0Rrd0luMA=="},
	},
	"curl-auth-user": {
		why: "A greedy run finds the last -u of a line, so that others are left, and the line is held to its end. The first is found, " +
			"then the next behind the next curl; what is quoted ends with its line.",
		patterns: map[string]string{
			"curl-auth-user": `\bcurl\b(?:[^\r\n]|\\\r?\n)*?[ \t\n\r](?:-u|--user)(?:=|[ \t]{0,5})` +
				`("(?::[^"\r\n]{3,}|[^:"\r\n]{3,}:|[^:"\r\n]{3,}:[^"\r\n]{3,})"|'[^':\r\n]{3,}:[^'\r\n]{3,}'` +
				`|(?:"[^"\r\n]{3,}"|'[^'\r\n]{3,}'|[\w$@.-]+):(?:"[^"\r\n]{3,}"|'[^'\r\n]{3,}'|[\w${}@.-]+))(?:\s|\z)`,
		},
		finds:  []string{"curl -u ann:firstpass x; curl -u bob:secondpw y", "curl \\\n  --user \"ann:firstpass\" x"},
		spares: []string{"docker run -u 1000:1000 image", "curl -u ${USER}:${PASSWORD} x"},
	},
	"curl-auth-header": {
		why: "It reads from curl on without a bound, and has eight groups, one for each way to write the header. The flag and the quoted " +
			"header say enough, and each header of a line is found.",
		patterns: map[string]string{
			"curl-auth-header": `(?:^|[ \t\n\r])(?:-H|--header)(?:=|[ \t]{0,5})["'](?i:Authorization:[ \t]{0,5}(?:(?:Basic|Bearer|(?:Api-)?Token)[ \t])?` +
				`|(?:(?:X-(?:[a-z]+-)?)?(?:Api-?)?(?:Key|Token)):[ \t]{0,5})([\w=~@.+/-]{8,})["']`,
		},
		finds:  []string{`curl -H "X-Api-Key: q9Zr4Tn7Lw2Xk8Vb" -H 'Authorization: Bearer q9Zr4Tn7Lw2Xk8Vb5Mc1' x`},
		spares: []string{`curl -H "Content-Type: application/json" x`, "curl -H 'Authorization: Bearer $TOKEN' x"},
	},
	"atlassian-api-token": {
		why: "Two shapes in one pattern; apart, each has an opening of its own and text without spaces is read eight times as fast.",
		patterns: map[string]string{
			"atlassian-api-token": `(?i)[\w.-]{0,50}?(?:(?-i:ATLASSIAN|[Aa]tlassian)|(?-i:CONFLUENCE|[Cc]onfluence)|(?-i:JIRA|[Jj]ira))` +
				assigned + `([a-z0-9]{20}[a-f0-9]{4})` + ends,
			"atlassian-api-token-v3": `\b(ATATT3[A-Za-z0-9_\-=]{186})` + ends,
		},
		finds: []string{"jira_token=" + "q9zr4tn7lw2xk8vb5mc1" + "0a1b"},
	},
	"kubernetes-secret-yaml": {
		why: "Its two groups stand in two orders, and a rule has one: two rules. Its allow list on the match is left out, since the match " +
			"begins long before what is redacted.",
		patterns: map[string]string{
			"kubernetes-secret-yaml":            `(?i)\bkind:[ \t]*["']?\bsecret\b["']?(?s:.){0,200}?\bdata:(?s:.){0,100}?\s+` + secretEntry,
			"kubernetes-secret-yaml-data-first": `(?i)\bdata:(?s:.){0,100}?\s+` + secretEntry + `(?s:.){0,200}?\bkind:[ \t]*["']?\bsecret\b["']?`,
		},
		finds: []string{"apiVersion: v1\nkind: Secret\ndata:\n  password: cGFzc3dvcmQxMjM0\n", "data:\n  password: cGFzc3dvcmQxMjM0\nkind: Secret\n"},
	},
	"nuget-config-password": {
		why: "A greedy run takes the last quote of the line for the end of the password.",
		patterns: map[string]string{
			"nuget-config-password": `(?i)<add key="(?:(?:ClearText)?Password)"\s*value="([^"\n]{8,})"\s*/>`,
		},
		finds: []string{`<add key="ClearTextPassword" value="q9Zr4Tn7Lw" /> <!-- "old" -->`},
	},
}

// secretEntry is a name and a value in the data of a secret.
const secretEntry = `([\w.-]+:(?:[ \t]*(?:\||>[-+]?)\s+)?[ \t]*(?:["']?[a-z0-9+/]{10,}={0,3}["']?|\{\{[ \t\w"|$:=,.-]+}}|""|''))`

const teamsWebhook = "https://acme.webhook.office.com/webhookb2/" + "0a1b2c3d-aaaa-bbbb-cccc-0a1b2c3d4e5f" + "@" + "0a1b2c3d-dddd-eeee-ffff-0a1b2c3d4e5f" +
	"/IncomingWebhook/" + "0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d" + "/" + "0a1b2c3d-1111-2222-3333-0a1b2c3d4e5f"
