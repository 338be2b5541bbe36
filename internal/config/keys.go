package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

var errNoProxy = errors.New("not the URL of a proxy: want one such as http://proxy.example:3128")

// keyCommandTimeout is how long a command may take to print a key.
const keyCommandTimeout = 30 * time.Second

// Secrets are the values that a configuration refers to.
type Secrets struct {
	Keys    map[string]string            // by upstream
	Headers map[string]map[string]string // by upstream and name
	Proxies map[string]string            // by upstream
}

// ReadSecrets reads the keys and other secrets that the upstreams refer to. It
// stands apart from [Load] so that a configuration can be checked where its
// secrets are not. Its error is a [diag.List] with a diagnostic for each that is
// not there, at the place that names it.
func (c *Config) ReadSecrets(getenv func(string) string) (Secrets, error) {
	found := Secrets{Keys: map[string]string{}, Headers: map[string]map[string]string{}, Proxies: map[string]string{}}
	r := &reader{file: c.File}
	read := func(k Key, missing string, keep func(string)) {
		if k.Env == "" && k.File == "" && len(k.Command) == 0 {
			return
		}
		value, err := k.read(getenv)
		if err != nil {
			r.errorf(k.At, "", "%s: %v", missing, err)
			return
		}
		keep(value)
	}
	for _, u := range c.Upstreams {
		read(u.Key, fmt.Sprintf("upstream %q has no key", u.Name), func(v string) { found.Keys[u.Name] = v })
		read(u.ProxyFrom, fmt.Sprintf("upstream %q has no proxy", u.Name), func(v string) {
			if _, err := ParseProxy(v); err != nil {
				r.errorf(u.ProxyFrom.At, "", "upstream %q has no proxy: %v", u.Name, err)
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
	return found, r.list.Err()
}

// reference is the key as a file refers to it; empty for none, and for one that
// a command prints.
func (k Key) reference() string {
	switch {
	case k.Env != "":
		return "env:" + k.Env
	case k.File != "":
		return "file:" + k.File
	}
	return ""
}

// read gives the key, without white space around it.
func (k Key) read(getenv func(string) string) (string, error) {
	switch {
	case k.Env != "":
		key := strings.TrimSpace(getenv(k.Env))
		if key == "" {
			return "", fmt.Errorf("environment variable %s is not set", k.Env)
		}
		return key, nil
	case len(k.Command) > 0:
		return k.run()
	}
	data, err := os.ReadFile(k.File)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(data))
	if key == "" || strings.ContainsAny(key, "\r\n") {
		return "", fmt.Errorf("file %s must hold the key, alone on one line", k.File)
	}
	return key, nil
}

// run gives what the command prints. What it prints is in no error; what it says
// of a failure goes where this program's own talk goes.
func (k Key) run() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keyCommandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.Command[0], k.Command[1:]...)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("command %s: %w", k.Command[0], err)
	}
	key := strings.TrimSpace(string(out))
	if key == "" || strings.ContainsAny(key, "\r\n") {
		return "", fmt.Errorf("command %s must print the key, alone on one line", k.Command[0])
	}
	return key, nil
}
