package dial

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Socket gives a transport for the server that listens on the unix socket at
// path. Requests come to it whatever host they name, over http. It waits for an
// answer as long as the request's context does, since one may come only when a
// run is over. Whoever asks for it closes its connections
// (CloseIdleConnections).
func Socket(path string) interface {
	http.RoundTripper
	CloseIdleConnections()
} {
	d := &net.Dialer{Timeout: time.Second}
	t := pool(d)
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", path)
	}
	t.ResponseHeaderTimeout = 0
	return &transport{pool: t, allowed: []string{"unix:" + path}, allows: func(string, string) bool { return true }}
}
