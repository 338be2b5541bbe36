package config

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stoplog/stoplog/internal/diag"
	"github.com/stoplog/stoplog/internal/secret"
)

// Reach says how an upstream at an address is called.
type Reach struct {
	// Headers are sent with each call, in place of those that a caller's request
	// brings under these names.
	Headers []Header
	// Proxy is the way there: empty for straight, environment for what HTTP_PROXY,
	// HTTPS_PROXY and NO_PROXY say, or a URL; ProxyFrom, if it is set, is where
	// such a URL is.
	Proxy     string
	ProxyFrom Key
	// CA is a file of certificates, in PEM, of the authorities that the server's
	// must come from; empty for the system's.
	CA       string
	Timeouts Timeouts
	// Retries is how often a call is made again that failed before the first byte
	// of its answer, unless its caller tries again by itself.
	Retries int
	// Azure, if it is not nil, gives the paths the shape that Azure's have.
	Azure *Azure
}

// Timeouts are how long a call waits. How long an answer takes in all is not
// among them: a stream may last.
type Timeouts struct {
	Connect time.Duration // for a connection, and then for TLS
	Header  time.Duration // for the answer's header, once the request is sent
	Idle    time.Duration // for the next piece of the answer's body
}

// Header is one header field. Its value is written in the file, or is where From
// says.
type Header struct {
	Name, Value string
	From        Key
}

// Azure is what Azure's paths hold beside the protocol's.
type Azure struct {
	APIVersion string
	// Deployments are names of deployments by model; a model that is not among
	// them is deployed under its own name.
	Deployments []Deployment
}

// Deployment is the name under which Azure serves a model.
type Deployment struct{ Model, Name string }

func defaultReach() Reach {
	return Reach{
		Timeouts: Timeouts{Connect: 10 * time.Second, Header: 10 * time.Minute, Idle: 5 * time.Minute},
		Retries:  2,
	}
}

// What an upstream says of how it is called, before it means anything.
type (
	reachDecl struct {
		headers               []headerDecl
		proxy, ca             at[string]
		connect, header, idle at[time.Duration]
		retries               at[int64]
		azure                 *azureDecl
		written               diag.Span // of one of them
	}
	headerDecl struct{ name, value at[string] }
	azureDecl  struct {
		span        diag.Span
		version     at[string]
		deployments []headerDecl
	}
)

// reach reads a member of an upstream if it is one about how it is called.
func (d decoder) reach(r *reachDecl, m member) {
	r.written = m.Span
	switch m.Key {
	case "headers":
		r.headers = d.pairs(m, "header")
	case "proxy":
		r.proxy = d.text(m.Value, m.Key)
	case "ca":
		r.ca = d.text(m.Value, m.Key)
	case "timeouts":
		d.timeouts(r, m.Value)
	case "retries":
		r.retries = d.integer(m.Value, m.Key, 0, 10)
	case "azure":
		r.azure = d.azure(m.Value)
	}
}

func (d decoder) timeouts(r *reachDecl, n node) {
	members, _ := d.members(n, timeoutsShape)
	for _, m := range members {
		switch m.Key {
		case "connect":
			r.connect = d.duration(m.Value, m.Key, time.Second, 5*time.Minute)
		case "header":
			r.header = d.duration(m.Value, m.Key, time.Second, 24*time.Hour)
		case "idle":
			r.idle = d.duration(m.Value, m.Key, time.Second, 24*time.Hour)
		}
	}
}

func (d decoder) azure(n node) *azureDecl {
	a := &azureDecl{span: n.Span}
	members, flawed := d.members(n, azureShape)
	for _, m := range members {
		switch m.Key {
		case "api_version":
			a.version = d.text(m.Value, m.Key)
		case "deployments":
			a.deployments = d.pairs(m, "model")
		}
	}
	if !a.version.written() && !flawed {
		d.Errorf(n.Span, "write one such as api_version: 2024-10-21", "azure has no api_version")
	}
	return a
}

// pairs reads a mapping from names to texts, in the file's order.
func (d decoder) pairs(m member, what string) []headerDecl {
	if !d.is(m.Value, mapping, m.Key) {
		return nil
	}
	var all []headerDecl
	for _, p := range d.unique(m.Value.Members) {
		value := d.text(p.Value, "the value of "+what+" "+strconv.Quote(p.Key))
		all = append(all, headerDecl{at[string]{p.Key, p.Span, true}, value})
	}
	return all
}

// reach checks and completes what an upstream says of how it is called.
func (s *resolver) reach(d reachDecl) Reach {
	r := defaultReach()
	for _, h := range d.headers {
		if h.value.set {
			r.Headers = append(r.Headers, s.header(h))
		}
	}
	if d.proxy.set {
		s.proxy(&r, d.proxy)
	}
	if d.ca.set {
		if r.CA = s.path(d.ca.value); !isFile(r.CA) {
			s.Errorf(d.ca.span, "name a file of certificates in PEM", "there is no file %s", r.CA)
		}
	}
	for _, t := range []struct {
		to  *time.Duration
		set at[time.Duration]
	}{{&r.Timeouts.Connect, d.connect}, {&r.Timeouts.Header, d.header}, {&r.Timeouts.Idle, d.idle}} {
		if t.set.set {
			*t.to = t.set.value
		}
	}
	if d.retries.set {
		r.Retries = int(d.retries.value)
	}
	if d.azure != nil {
		r.Azure = s.azure(d.azure)
	}
	return r
}

var (
	headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	// ours are headers that the call itself needs, so that none may replace them.
	ours = []string{"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "host", "te", "trailer", "transfer-encoding", "upgrade"}
	// bearing are headers whose value is a secret.
	bearing = regexp.MustCompile(`(?i)^(authorization|proxy-authorization|cookie|.*(key|token|secret|password).*)$`)
)

func (s *resolver) header(d headerDecl) Header {
	h := Header{Name: d.name.value}
	from, isReference := s.reference(d.value)
	name := strings.ToLower(h.Name)
	switch {
	case !headerForm.MatchString(h.Name):
		s.Errorf(d.name.span, "", "%q is not the name of a header", h.Name)
	case slices.Contains(ours, name) || strings.HasPrefix(name, "stoplog-"):
		s.Errorf(d.name.span, "remove it", "header %s is set for each call, and not by the configuration", h.Name)
	case isReference:
		h.From = from
	case bearing.MatchString(h.Name):
		refused := s.Diagnostic(d.value.span, "write env:NAME or file:PATH, and replace the value if this was one",
			"the value of header %s is a secret, and none is written into the configuration", h.Name)
		refused.Source = ""
		s.List = append(s.List, refused)
	default:
		h.Value = d.value.value
	}
	return h
}

// reference reads env:NAME or file:PATH.
func (s *resolver) reference(a at[string]) (Key, bool) {
	source, err := secret.Parse(a.value)
	if err != nil {
		return Key{}, false
	}
	if source.File != "" {
		source.File = s.path(source.File)
	}
	return Key{Source: source, At: a.span}, true
}

func (s *resolver) proxy(r *Reach, p at[string]) {
	const form = "write none, environment, a URL such as http://proxy.example:3128, or env:NAME"
	if from, ok := s.reference(p); ok {
		r.ProxyFrom = from
		return
	}
	if p.value == "none" || p.value == "environment" {
		r.Proxy = strings.TrimPrefix(p.value, "none")
		return
	}
	u, err := ParseProxy(p.value)
	switch {
	case err != nil:
		s.Errorf(p.span, form, "proxy is not the address of one")
	case u.User != nil:
		s.Errorf(p.span, "write proxy: env:NAME or file:PATH, which may hold a URL with them", "proxy holds credentials")
	default:
		r.Proxy = p.value
	}
}

// ParseProxy reads the URL of a proxy.
func ParseProxy(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err == nil && (u.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)) {
		err = errNoProxy
	}
	if err != nil {
		return nil, errNoProxy // what url.Parse says would repeat the credentials
	}
	return u, nil
}

var azureName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func (s *resolver) azure(d *azureDecl) *Azure {
	a := &Azure{APIVersion: d.version.value}
	if d.version.set && !azureName.MatchString(d.version.value) {
		s.Errorf(d.version.span, "write one such as 2024-10-21", "%q is not a version", d.version.value)
	}
	for _, p := range d.deployments {
		if p.value.set && !azureName.MatchString(p.value.value) {
			s.Errorf(p.value.span, "use letters, digits, `_`, `.` and `-`", "%q is not the name of a deployment", p.value.value)
		}
		a.Deployments = append(a.Deployments, Deployment{p.name.value, p.value.value})
	}
	return a
}

func isFile(name string) bool {
	info, err := os.Stat(filepath.Clean(name))
	return err == nil && !info.IsDir()
}

// printed gives what is in force in the shape of the file.
func (r Reach) printed() object {
	o := object{}
	if len(r.Headers) > 0 {
		headers := object{}
		for _, h := range r.Headers {
			value := h.Value
			if ref := h.From.String(); ref != "" {
				value = ref
			}
			headers = append(headers, field{h.Name, value})
		}
		o = append(o, field{"headers", headers})
	}
	if proxy := r.Proxy + r.ProxyFrom.String(); proxy != "" {
		o = append(o, field{"proxy", proxy})
	}
	if r.CA != "" {
		o = append(o, field{"ca", r.CA})
	}
	o = append(o, field{"timeouts", object{
		{"connect", short(r.Timeouts.Connect)}, {"header", short(r.Timeouts.Header)}, {"idle", short(r.Timeouts.Idle)},
	}}, field{"retries", int64(r.Retries)})
	if r.Azure != nil {
		azure := object{{"api_version", r.Azure.APIVersion}}
		if len(r.Azure.Deployments) > 0 {
			deployments := object{}
			for _, d := range r.Azure.Deployments {
				deployments = append(deployments, field{d.Model, d.Name})
			}
			azure = append(azure, field{"deployments", deployments})
		}
		o = append(o, field{"azure", azure})
	}
	return o
}
