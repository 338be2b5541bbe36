package config

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func (s *resolver) upstream(d upstreamDecl) Upstream {
	u := Upstream{Name: d.name.value, Protocol: d.protocol.value, Zone: "external"}
	if !d.protocol.written() && !d.flawed {
		s.Errorf(d.name.span, "write protocol: openai, or protocol: anthropic", "upstream %q has no protocol", u.Name)
	}
	switch {
	case d.cassettes.written():
		u.Zone = "local"
		s.replay(&u, d)
	case d.baseURL.written():
		s.call(&u, d)
	case !d.flawed:
		s.Errorf(d.name.span, "write base_url or cassettes", "upstream %q leads nowhere", u.Name)
	}
	if d.zone.set {
		u.Zone = d.zone.value
	}
	return u
}

// call completes an upstream at an address.
func (s *resolver) call(u *Upstream, d upstreamDecl) {
	if d.pace.written() {
		s.Errorf(d.pace.span, "remove it", "pace is for cassettes, and upstream %q has none", u.Name)
	}
	if d.baseURL.set {
		u.BaseURL = s.baseURL(u, d.baseURL)
	}
	u.Reach = s.reach(d.reach)
	if u.Azure != nil && u.Protocol != OpenAI {
		s.Errorf(d.reach.azure.span, "remove it", "azure is a shape of openai's paths, and upstream %q speaks %s", u.Name, u.Protocol)
	}
	switch {
	case d.key.set:
		u.Key, _ = s.reference(d.key)
	case d.keyCommand.set:
		u.Key.At = d.keyCommand.span
		for _, w := range d.keyCommand.value {
			u.Key.Command = append(u.Key.Command, w.value)
		}
	}
}

// baseURL checks the address, to which paths will be appended.
func (s *resolver) baseURL(u *Upstream, b at[string]) string {
	const form = "write one such as https://api.openai.com/v1"
	parsed, err := url.Parse(b.value)
	switch {
	case err != nil || parsed.Host == "" || parsed.Hostname() == "":
		s.Errorf(b.span, form, "base_url is not an address")
		return ""
	case parsed.Scheme != "https" && parsed.Scheme != "http":
		s.Errorf(b.span, form, "base_url has the scheme %q, want https or http", parsed.Scheme)
	case parsed.User != nil:
		s.Errorf(b.span, "give the key as key: env:NAME or file:PATH", "base_url holds credentials")
	case parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" || strings.Contains(b.value, "#"):
		s.Errorf(b.span, form, "base_url has a query or a fragment, and a path is to be appended to it")
	case parsed.Scheme == "http" && !loopback(parsed.Hostname()):
		s.warnf(b.span, "", "upstream %q is called without encryption: keys and text can be read on the way", u.Name)
	}
	base := strings.TrimRight(b.value, "/")
	if u.Protocol == Anthropic && strings.HasSuffix(base, "/v1") {
		s.warnf(b.span, "leave out /v1", "the paths of anthropic begin with /v1: upstream %q will be asked for /v1/v1/messages", u.Name)
	}
	return base
}

// replayed is the base address of cassettes, by protocol: the paths are those of
// the providers themselves, under a host that RFC 2606 keeps from existing.
var replayed = map[string]string{
	OpenAI:    "http://cassette.invalid/v1",
	Anthropic: "http://cassette.invalid",
}

// replay completes an upstream of cassettes.
func (s *resolver) replay(u *Upstream, d upstreamDecl) {
	u.BaseURL = replayed[u.Protocol]
	if d.baseURL.written() {
		s.Errorf(d.baseURL.span, "keep one", "upstream %q has both an address and cassettes", u.Name)
	}
	if d.key.written() {
		s.Errorf(d.key.span, "remove it", "upstream %q is replayed from cassettes, which ask for no key", u.Name)
	}
	if d.reach.written.Line > 0 {
		s.Errorf(d.reach.written, "remove it", "upstream %q is replayed from cassettes, and is not called", u.Name)
	}
	if u.Pace = "none"; d.pace.set {
		u.Pace = d.pace.value
	}
	for _, glob := range d.cassettes.value {
		u.Cassettes = append(u.Cassettes, s.glob(glob)...)
	}
	slices.Sort(u.Cassettes)
	u.Cassettes = slices.Compact(u.Cassettes)
}

// glob gives the files that a pattern of the configuration matches.
func (s *resolver) glob(pattern at[string]) []string {
	files, err := filepath.Glob(s.pattern(pattern.value))
	files = slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return err != nil || info.IsDir()
	})
	if err != nil {
		s.Errorf(pattern.span, "", "%q is not a pattern of file names", pattern.value)
	} else if len(files) == 0 {
		s.Errorf(pattern.span, "a pattern is relative to the folder of the configuration", "no file matches %q", pattern.value)
	}
	return files
}

// path makes a path of the configuration, which is relative to the file's
// folder, one that the program can open.
func (s *resolver) path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(filepath.Dir(s.File), name)
}

var literal = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

// pattern is path for a glob: what is special in the folder's name is not in it.
func (s *resolver) pattern(glob string) string {
	if filepath.IsAbs(glob) {
		return glob
	}
	return filepath.Join(literal.Replace(filepath.Dir(s.File)), glob)
}
