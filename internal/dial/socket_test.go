package dial

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
)

func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Host+r.URL.Path)
	})}
	ended := make(chan error)
	go func() { ended <- server.Serve(l) }()
	rt := Socket(path)
	resp, err := rt.RoundTrip(request(t, "http://anybody.invalid/x"))
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, resp); got != "anybody.invalid/x" {
		t.Errorf("the server was asked for %q", got)
	}
	if _, err := rt.RoundTrip(request(t, "ftp://anybody.invalid/x")); err == nil {
		t.Error("ftp is spoken")
	}
	rt.CloseIdleConnections()
	server.Close()
	<-ended
	if _, err := rt.RoundTrip(request(t, "http://anybody.invalid/x")); err == nil {
		t.Error("nobody listens, and there is an answer")
	}
}
