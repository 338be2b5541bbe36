package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A program reaches the hosts of its scope, through the proxy, and no other; and
// a service of the host's on its port.
func TestHosts(t *testing.T) {
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := upstream.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			fmt.Fprintf(c, "you said %s", line)
			c.Close()
		}
	})
	defer served.Wait()
	defer upstream.Close()

	var mu sync.Mutex
	var dialled []string
	s := newRoom(t).attack(t)
	s.Scope.Hosts = []string{"allowed.test:443", "down.test:443"}
	s.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		dialled = append(dialled, address)
		mu.Unlock()
		if address != "allowed.test:443" {
			return nil, errors.New("it is down")
		}
		return net.Dial(network, upstream.Addr().String())
	}
	s.Services = []Service{{Port: 80, Serve: func(l net.Listener) {
		http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "a service") }))
	}}}
	s.Argv = append(s.Argv, "proxy=allowed.test:443", "proxy=ALLOWED.test:443", "proxy=other.test:443", "proxy=allowed.test:22", "proxy=down.test:443", "get=http://127.0.0.1/", "get=http://127.0.0.1:3128/", "connect=127.0.0.1:81")
	o := do(t, s)
	want := `proxy=allowed.test:443: you said hello
proxy=ALLOWED.test:443: 502 Bad Gateway
proxy=other.test:443: 403 Forbidden
proxy=allowed.test:22: 403 Forbidden
proxy=down.test:443: 502 Bad Gateway
get=http://127.0.0.1/: a service
get=http://127.0.0.1:3128/: this proxy speaks CONNECT alone: use https
connect=127.0.0.1:81: ECONNREFUSED
`
	if o.stdout != want {
		t.Errorf("got\n%swant\n%s%s", o.stdout, want, o.stderr)
	}
	for _, address := range dialled {
		if !strings.EqualFold(address, "allowed.test:443") && address != "down.test:443" {
			t.Errorf("dialled %s", address)
		}
	}
}

// viaProxy connects to a host through the proxy that the environment names, says
// hello, and gives the answer as an error.
func viaProxy(host, proxy string) error {
	c, err := net.Dial("tcp", strings.TrimPrefix(proxy, "http://"))
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", host)
	r := bufio.NewReader(c)
	answer, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	fmt.Fprint(c, "hello\n")
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	return errors.New(strings.TrimSpace(line))
}

func get(url string) error {
	answer, err := (&http.Client{Transport: &http.Transport{}}).Get(url) // no proxy
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return errors.New(strings.TrimSpace(string(text)))
}
