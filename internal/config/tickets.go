package config

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
)

// Tickets says where tickets go beside the outbox. The zero Tickets: nowhere.
type Tickets struct {
	Folder string // named from the working directory; empty: none
	// GitHub opens issues in a repository; nil: none.
	GitHub *GitHubTickets
	// Webhook posts them; nil: none.
	Webhook *WebhookTickets
	// Command takes them on stdin; empty: none.
	Command []string
}

// GitHubTickets is a repository of issues.
type GitHubTickets struct {
	Repo  string // OWNER/NAME
	API   string
	Token Key
}

// WebhookTickets is an address to post to. Who knows such an address may post
// there, so it is kept like a key.
type WebhookTickets struct {
	URL    Key
	Secret Key // that signs what is posted; the zero Key: nothing does
}

// GitHubAPI is the address of GitHub's own interface.
const GitHubAPI = "https://api.github.com"

// ticketsDecl is where a file says that tickets go.
type ticketsDecl struct {
	folder, repo, api, token, url, secret at[string]
	github, webhook                       at[bool] // whether they are written, and where
	command                               names
}

var (
	ticketsShape = shape{what: "tickets", path: "tickets", keys: []string{"folder", "github", "webhook", "command"}}
	githubShape  = shape{what: "github", path: "tickets.github", keys: []string{"repo", "token", "api"}}
	webhookShape = shape{what: "a webhook", path: "tickets.webhook", keys: []string{"url", "secret"}}
)

func (d decoder) tickets(n node) (t ticketsDecl) {
	members, _ := d.members(n, ticketsShape)
	for _, m := range members {
		switch m.Key {
		case "folder":
			t.folder = d.text(m.Value, m.Key)
		case "command":
			t.command = d.words(m.Value, m.Key)
		case "github":
			within, flawed := d.members(m.Value, githubShape)
			t.github = at[bool]{!flawed, m.Value.Span, true}
			for _, m := range within {
				switch m.Key {
				case "repo":
					t.repo = d.text(m.Value, m.Key)
				case "api":
					t.api = d.text(m.Value, m.Key)
				case "token":
					t.token = d.key(m.Value)
				}
			}
		case "webhook":
			within, flawed := d.members(m.Value, webhookShape)
			t.webhook = at[bool]{!flawed, m.Value.Span, true}
			for _, m := range within {
				switch m.Key {
				case "url":
					t.url = d.key(m.Value)
				case "secret":
					t.secret = d.key(m.Value)
				}
			}
		}
	}
	return t
}

var repoName = regexp.MustCompile(`^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$`)

func (s *resolver) tickets(d ticketsDecl) (t Tickets) {
	if d.folder.set {
		t.Folder = s.path(d.folder.value)
	}
	for _, w := range d.command.value {
		t.Command = append(t.Command, w.value)
	}
	if d.github.set {
		t.GitHub = &GitHubTickets{Repo: d.repo.value, API: cmp.Or(d.api.value, GitHubAPI)}
		t.GitHub.Token, _ = s.reference(d.token)
		switch {
		case !d.github.value:
		case !repoName.MatchString(d.repo.value):
			s.Errorf(d.github.span, "write repo: OWNER/NAME", "github names no repository")
		case !d.token.set:
			s.Errorf(d.github.span, "write token: env:GITHUB_TOKEN", "github has no token")
		}
		if d.api.set {
			if err := CheckAddress(d.api.value); err != nil {
				s.Errorf(d.api.span, "write one such as "+GitHubAPI, "api is %v", err)
			}
		}
	}
	if d.webhook.set {
		t.Webhook = &WebhookTickets{}
		t.Webhook.URL, _ = s.reference(d.url)
		t.Webhook.Secret, _ = s.reference(d.secret)
		if d.webhook.value && !d.url.set {
			s.Errorf(d.webhook.span, "write url: env:NAME", "a webhook has no url")
		}
	}
	return t
}

// CheckAddress says what is wrong with an address that tickets go to; nil if nothing
// is. It does not repeat it: it may hold a secret.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("not an address of http or https")
	case u.User != nil:
		return errors.New("an address that holds credentials")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return errors.New("an address of another machine without encryption")
	}
	return nil
}

// printedTickets is the section as it would be written; empty if there is none.
func (c *Config) printedTickets() (o object) {
	t := c.Tickets
	if t.Folder != "" {
		o = append(o, field{"folder", t.Folder})
	}
	if g := t.GitHub; g != nil {
		in := object{{"repo", g.Repo}, {"token", g.Token.printed()}}
		if g.API != GitHubAPI {
			in = append(in, field{"api", g.API})
		}
		o = append(o, field{"github", in})
	}
	if h := t.Webhook; h != nil {
		in := object{{"url", h.URL.printed()}}
		if key := h.Secret.printed(); key != nil {
			in = append(in, field{"secret", key})
		}
		o = append(o, field{"webhook", in})
	}
	if len(t.Command) > 0 {
		o = append(o, field{"command", t.Command})
	}
	return o
}
