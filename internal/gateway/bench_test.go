package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/gateway"
)

const benchEvents = 200

// BenchmarkGateway measures what the gateway costs beside Go's own reverse
// proxy, which judges nothing: the process's CPU time for an event of a stream
// and for an unstreamed request, less what client and upstream take when they
// talk directly. Guards are those of the built-in profile; records go to a file.
// The upstream says an event when the client has the one before, as real ones
// do, who are slower than any proxy: none is merged with the next.
//
//	go test -run - -bench Gateway ./internal/gateway
func BenchmarkGateway(b *testing.B) {
	for _, kind := range []string{"stream", "unstreamed"} {
		for _, text := range []string{"prose", "secrets"} {
			b.Run(kind+"/"+text, func(b *testing.B) { benchGateway(b, kind == "stream", text) })
		}
	}
}

func benchGateway(b *testing.B, stream bool, text string) {
	up := benchUpstream(b, text)
	proxy, gate := benchProxy(b, up), benchDoor(b, up)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(client.CloseIdleConnections)
	per := 1.0
	if stream {
		per = benchEvents
	}
	var direct, reverse, ours time.Duration
	n := 0
	for b.Loop() { // in turn, so that what disturbs one disturbs all
		direct += cpuOf(b, client, up+"/v1/chat/completions", stream)
		reverse += cpuOf(b, client, proxy+"/v1/chat/completions", stream)
		ours += cpuOf(b, client, gate+path(govern.OpenAI), stream)
		n++
	}
	each := func(d time.Duration) float64 {
		return float64((d - direct).Nanoseconds()) / float64(n*benchBatch) / per
	}
	unit := "request"
	if stream {
		unit = "event"
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(each(ours), "cpu-ns/"+unit)
	b.ReportMetric(each(reverse), "revproxy-cpu-ns/"+unit)
	b.ReportMetric(each(ours)/each(reverse), "ratio")
}

// benchBatch is how many requests are measured together, eight at a time.
const benchBatch = 32

func cpuOf(b *testing.B, client *http.Client, where string, stream bool) time.Duration {
	body := question(govern.OpenAI, stream)
	began := cpuTime(b)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range benchBatch / 8 {
				if err := readInStep(client, where, body); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return cpuTime(b) - began
}

// A step is how far a client is with a stream, for the upstream to wait for.
type step struct {
	seen atomic.Int64
	more chan struct{}
}

var (
	steps   sync.Map // by the User-Agent of the request
	stepSeq atomic.Int64
)

func (s *step) wait(n int64) {
	for s.seen.Load() < n {
		<-s.more
	}
}

func readInStep(client *http.Client, where, body string) error {
	s := &step{more: make(chan struct{}, 1)}
	name := fmt.Sprint("bench/", stepSeq.Add(1))
	steps.Store(name, s)
	defer steps.Delete(name)
	req, err := http.NewRequest("POST", where, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", name)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	buf := make([]byte, 8<<10)
	for size := 0; ; {
		n, err := resp.Body.Read(buf)
		size += n
		s.seen.Add(int64(bytes.Count(buf[:n], []byte("\n\n"))))
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err == io.EOF && resp.StatusCode == 200 && size > 500 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%d, %d bytes: %w", resp.StatusCode, size, err)
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchUpstream says 200 deltas, or their sum.
func benchUpstream(b *testing.B, text string) string {
	words := strings.Fields("the river was high that week and the men at the lower gate set their beams one above the other until it held back what came down")
	var deltas []string
	for i := range benchEvents {
		deltas = append(deltas, words[i%len(words)]+" ")
		if text == "secrets" && i%75 == 74 { // one in about 300 bytes, cut
			deltas[i-1], deltas[i] = secret[:20], secret[20:]+" "
		}
	}
	streamed, whole := said(govern.OpenAI, deltas...)
	events := bytes.SplitAfter(streamed, []byte("\n\n"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		if !bytes.Contains(asked, []byte(`"stream":true`)) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			io.WriteString(w, whole)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		c := http.NewResponseController(w)
		v, _ := steps.Load(r.UserAgent())
		for i, e := range events {
			w.Write(e)
			c.Flush()
			if !bytes.Contains(e, []byte(secret[:20])) && i < benchEvents { // else it is held
				v.(*step).wait(int64(i))
			}
		}
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// benchProxy is Go's reverse proxy. It reads the request's body first, as the
// gateway does: else one stream in a hundred breaks (golang/go#40747).
func benchProxy(b *testing.B, upstream string) string {
	u, err := url.Parse(upstream)
	if err != nil {
		b.Fatal(err)
	}
	pool := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	b.Cleanup(pool.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, FlushInterval: -1, Transport: pool}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			b.Error(err)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// benchDoor is a gateway with the guards of the built-in profile.
func benchDoor(b *testing.B, upstream string) string {
	secrets, pii := guardOf(b, guard.Redact, "secrets", "credentials"), guardOf(b, guard.Redact, "pii")
	shadow := func(m guard.Member) guard.Member { m.Mode = guard.Shadow; return m }
	door, err := govern.Open(govern.Config{
		Upstreams:  []govern.Upstream{{Name: "mock", Protocol: govern.OpenAI, BaseURL: upstream + "/v1"}},
		Profiles:   []govern.Profile{{Name: "default", Upstreams: []string{"mock"}, Models: []string{"*"}, Input: []guard.Member{shadow(secrets)}, Output: []guard.Member{secrets, shadow(pii)}}},
		RecordFile: filepath.Join(b.TempDir(), "requests.jsonl"),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { door.Close() })
	server := httptest.NewServer(gateway.New(door, gateway.Mount{Protocol: govern.OpenAI, Profiles: []string{"default"}}))
	b.Cleanup(server.Close)
	return server.URL
}
