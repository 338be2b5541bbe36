package config

import (
	"fmt"
	"os"
	"strings"
)

// ReadKeys reads the keys that the upstreams refer to, by upstream. It stands
// apart from [Load] so that a configuration can be checked where its secrets are
// not. Its error is a [diag.List] with a diagnostic for each key that is not
// there, at the place that names it.
func (c *Config) ReadKeys(getenv func(string) string) (map[string]string, error) {
	keys := map[string]string{}
	r := &reader{file: c.File}
	for _, u := range c.Upstreams {
		if u.Key.Env == "" && u.Key.File == "" {
			continue
		}
		key, err := u.Key.read(getenv)
		if err != nil {
			r.errorf(u.Key.At, "", "upstream %q has no key: %v", u.Name, err)
			continue
		}
		keys[u.Name] = key
	}
	return keys, r.list.Err()
}

// read gives the key, without white space around it.
func (k Key) read(getenv func(string) string) (string, error) {
	if k.Env != "" {
		key := strings.TrimSpace(getenv(k.Env))
		if key == "" {
			return "", fmt.Errorf("environment variable %s is not set", k.Env)
		}
		return key, nil
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
