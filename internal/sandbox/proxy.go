package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// proxyPort is where the proxy listens inside of the sandbox.
const proxyPort = 3128

// addProxy adds a way to the scope's hosts, if it has any: a service that speaks
// CONNECT, and the variables that name it.
func (s *Spec) addProxy() error {
	if len(s.Scope.Hosts) == 0 {
		return nil
	}
	if s.Dial == nil {
		return errors.New("hosts: there is nobody to connect to them")
	}
	for _, host := range s.Scope.Hosts {
		name, port, err := net.SplitHostPort(host)
		if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || name == "" {
			return fmt.Errorf("hosts: %q is not HOST:PORT", host)
		}
	}
	p := &proxy{hosts: s.Scope.Hosts, dial: s.Dial}
	s.Services = append(slices.Clone(s.Services), Service{Port: proxyPort, Serve: p.serve})
	s.Env = slices.Clone(s.Env)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if !hasVariable(s.Env, name) {
			s.Env = append(s.Env, fmt.Sprintf("%s=http://127.0.0.1:%d", name, proxyPort))
		}
	}
	return nil
}

// proxy connects to the hosts of a scope, and to no other.
type proxy struct {
	hosts []string
	dial  func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	over  bool
	pipes sync.WaitGroup // those that began before it was over
}

// begin counts a pipe, unless the program's end has come.
func (p *proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.pipes.Add(1)
	}
	return !p.over
}

// connectLimit is how long a connection may take to be made.
const connectLimit = 30 * time.Second

func (p *proxy) serve(l net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: connectLimit,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	server.Serve(l) // returns when the listener is closed
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	cancel()
	server.Close()
	p.pipes.Wait()
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		return
	}
	defer p.pipes.Done()
	if r.Method != http.MethodConnect {
		http.Error(w, "this proxy speaks CONNECT alone: use https", http.StatusMethodNotAllowed)
		return
	}
	if !p.allows(r.Host) {
		http.Error(w, "the step's scope does not name this host", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), connectLimit)
	there, err := p.dial(ctx, "tcp", r.Host)
	cancel()
	if err != nil {
		http.Error(w, "the host is not reached", http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// The program's end closes both: nothing is copied for longer.
	stop := context.AfterFunc(r.Context(), func() { here.Close(); there.Close() })
	defer stop()
	var copies sync.WaitGroup
	copies.Go(func() { io.Copy(there, buffered); halfClose(there) })
	copies.Go(func() { io.Copy(here, there); halfClose(here) })
	copies.Wait()
}

// allows reports whether a scope names a host. Names are compared as they are
// written, in any case.
func (p *proxy) allows(host string) bool {
	return slices.ContainsFunc(p.hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// halfClose tells the other side that nothing more comes.
func halfClose(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		return
	}
	c.Close()
}
