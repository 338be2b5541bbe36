package config

import (
	"errors"
	"fmt"

	"github.com/stoplog/stoplog/guard/match"
)

var errNoProxy = errors.New("not the URL of a proxy: want one such as http://proxy.example:3128")

// Secrets are the values that a configuration refers to.
type Secrets struct {
	Keys    map[string]string            // by upstream
	Headers map[string]map[string]string // by upstream and name
	Proxies map[string]string            // by upstream
	GitHub  string                       // the token that opens tickets
	Webhook string                       // the secret that signs tickets
	// WebhookURL is where tickets are posted.
	WebhookURL string
	// Literals are the values that guards look for, by guard.
	Literals map[string][]Literal
	Judges   map[string]string // by guard: the keys of services that are asked
}

// A Literal is a value that a guard looks for, and where it is from, which is what
// findings call it.
type Literal struct{ From, Value string }

// ReadSecrets reads the keys and other secrets that upstreams and guards refer to. It
// stands apart from [Load] so that a configuration can be checked where its
// secrets are not. Its error is a [diag.List] with a diagnostic for each that is
// not there, at the place that names it.
func (c *Config) ReadSecrets(getenv func(string) string) (Secrets, error) {
	found := Secrets{Keys: map[string]string{}, Headers: map[string]map[string]string{}, Proxies: map[string]string{}, Literals: map[string][]Literal{}, Judges: map[string]string{}}
	r := newReader(c.File)
	read := func(k Key, missing string, keep func(string)) {
		if k.IsZero() {
			return
		}
		value, err := k.Read(getenv)
		if err != nil {
			r.Errorf(k.At, "", "%s: %v", missing, err)
			return
		}
		keep(value)
	}
	if g := c.Tickets.GitHub; g != nil {
		read(g.Token, "tickets have no token for github", func(v string) { found.GitHub = v })
	}
	if h := c.Tickets.Webhook; h != nil {
		read(h.URL, "tickets have no address for the webhook", func(v string) {
			if err := CheckAddress(v); err != nil {
				r.Errorf(h.URL.At, "", "tickets have no address for the webhook: it is %v", err)
			}
			found.WebhookURL = v
		})
		read(h.Secret, "tickets have no secret for the webhook", func(v string) { found.Webhook = v })
	}
	for _, u := range c.Upstreams {
		read(u.Key, fmt.Sprintf("upstream %q has no key", u.Name), func(v string) { found.Keys[u.Name] = v })
		read(u.ProxyFrom, fmt.Sprintf("upstream %q has no proxy", u.Name), func(v string) {
			if _, err := ParseProxy(v); err != nil {
				r.Errorf(u.ProxyFrom.At, "", "upstream %q has no proxy: %v", u.Name, err)
			}
			found.Proxies[u.Name] = v
		})
		for _, h := range u.Headers {
			read(h.From, fmt.Sprintf("upstream %q has no header %s", u.Name, h.Name), func(v string) {
				if found.Headers[u.Name] == nil {
					found.Headers[u.Name] = map[string]string{}
				}
				found.Headers[u.Name][h.Name] = v
			})
		}
	}
	for _, g := range c.Guards {
		if g.Judge != nil {
			read(g.Judge.Key, fmt.Sprintf("guard %q has no key", g.Name), func(v string) { found.Judges[g.Name] = v })
		}
		for _, k := range g.Literals {
			read(k, fmt.Sprintf("guard %q has no value", g.Name), func(v string) {
				if err := match.CheckLiteral(v); err != nil {
					r.Errorf(k.At, "", "guard %q cannot look for %s: %v", g.Name, k, err)
				}
				found.Literals[g.Name] = append(found.Literals[g.Name], Literal{literalName(k), v})
			})
		}
	}
	return found, r.List.Err()
}
