package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/internal/diag"
)

// TLS names the files of a listener's certificate chain and of its key, in PEM.
type TLS struct{ Cert, Key string }

type tlsDecl struct {
	span      diag.Span
	cert, key at[string]
}

// KeysRequired reports whether callers must show a key: where the file says so,
// and wherever others than this machine can reach the listener.
func (c *Config) KeysRequired() bool { return c.RequireKeys || !c.Loopback() }

// Loopback reports whether the listener is this machine's alone.
func (c *Config) Loopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	return err == nil && loopback(host)
}

func (d decoder) tls(n node) *tlsDecl {
	t := &tlsDecl{span: n.Span}
	members, flawed := d.members(n, tlsShape)
	for _, m := range members {
		switch m.Key {
		case "cert":
			t.cert = d.text(m.Value, m.Key)
		case "key":
			t.key = d.text(m.Value, m.Key)
		}
	}
	if !flawed && (!t.cert.written() || !t.key.written()) {
		d.Errorf(n.Span, "write tls: {cert: FILE, key: FILE}", "tls needs both a certificate and its key")
	}
	return t
}

// listen checks the address. Who listens beyond this machine must know whom it
// serves.
func (s *resolver) listen(c *Config) {
	l := s.doc.listen
	if l.set {
		if err := CheckListen(l.value); err != nil {
			s.Errorf(l.span, "write an address such as "+defaultListen, "%v", err)
			return
		}
		c.Listen = l.value
	}
	if keys := s.doc.requireKeys; keys.set {
		c.RequireKeys = keys.value
		if !keys.value && !c.Loopback() {
			s.Errorf(keys.span, "remove it, or listen on 127.0.0.1", "keys are required where others than this machine can call: listen is %s", c.Listen)
		}
	}
	c.RequireKeys = c.KeysRequired()
	if t := s.doc.tls; t != nil && t.cert.set && t.key.set {
		c.TLS = TLS{Cert: s.path(t.cert.value), Key: s.path(t.key.value)}
		for _, f := range []struct {
			name string
			said at[string]
		}{{c.TLS.Cert, t.cert}, {c.TLS.Key, t.key}} {
			if !isFile(f.name) {
				s.Errorf(f.said.span, "name a file in PEM", "there is no file %s", f.name)
			}
		}
	}
	if l.set && !c.Loopback() && s.doc.tls == nil {
		s.warnf(l.span, "write tls: {cert: FILE, key: FILE}, or keep it behind a proxy that speaks TLS", "others can call %s, without encryption: keys and text can be read on the way", c.Listen)
	}
}

// CheckListen says what is wrong with a listen address: it is host:port.
func CheckListen(address string) error {
	host, port, err := net.SplitHostPort(address)
	if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || strings.ContainsAny(host, "/ ") {
		return fmt.Errorf("listen must be host:port, such as %s, not %q", defaultListen, address)
	}
	return nil
}

// loopback says whether host is this machine alone. A name other than localhost
// is not looked up: what it means can change.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
