package wire

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

// patterns returns a chain that enforces packs with one verdict.
func patterns(t testing.TB, v guard.Verdict, packs ...string) *guard.Chain {
	t.Helper()
	return guard.NewChain(guard.Options{}, guard.Member{Guard: engine(t, "test", v, packs...)})
}

// engines are those that tests have asked for: compiling takes longer than most of
// what they are tried on.
var engines sync.Map

// engine returns a guard of packs or rules with one verdict.
func engine(t testing.TB, name string, v guard.Verdict, packs ...string) *match.Engine {
	t.Helper()
	key := fmt.Sprint(name, v, packs)
	if e, ok := engines.Load(key); ok {
		return e.(*match.Engine)
	}
	rs, err := rules.Select(packs...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := match.Compile(rs, match.Options{Name: name, Key: []byte("key"), Verdict: v})
	if err != nil {
		t.Fatal(err)
	}
	engines.Store(key, e)
	return e
}

// recorded returns the recorded streams of a format: by name, a payload a line.
func recorded(t *testing.T, format string) map[string][]string {
	t.Helper()
	f, err := os.Open("../../../shared/data/streams.tar.gz")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("../shared/data is not there: nothing recorded to read")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	streams := map[string][]string{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(h.Name, format+"/") || !strings.HasSuffix(h.Name, ".jsonl") {
			continue
		}
		sc := bufio.NewScanner(tr)
		sc.Buffer(nil, 16<<20)
		for sc.Scan() {
			if len(sc.Bytes()) > 0 {
				streams[h.Name] = append(streams[h.Name], sc.Text())
			}
		}
		if err := sc.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if len(streams) < 10 {
		t.Fatalf("%d streams of %s", len(streams), format)
	}
	return streams
}

// serve frames payloads as a provider does.
func serve(f *Format, payloads []string) []byte {
	var b bytes.Buffer
	for _, p := range payloads {
		if f != OpenAIChat {
			var e struct{ Type string }
			json.Unmarshal([]byte(p), &e)
			fmt.Fprintf(&b, "event: %s\n", e.Type)
		}
		fmt.Fprintf(&b, "data: %s\n\n", p)
	}
	if f == OpenAIChat {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.Bytes()
}

// stream runs an answer through in pieces of n bytes.
func stream(f *Format, opt Options, upstream []byte, n int) (out []byte, ds []Decision, o Outcome) {
	opt.Context = context.Background()
	s := f.NewStream(opt)
	for piece := range slices.Chunk(upstream, n) {
		out = append(out, s.Write(piece)...)
		ds = append(ds, s.Decisions()...)
	}
	out = append(out, s.Close(nil)...)
	return out, append(ds, s.Decisions()...), s.Outcome()
}

var pings = regexp.MustCompile(`event: ping\ndata: [^\n]*\n\n`)

// all are the formats that have streams.
var all = []*Format{OpenAIChat, OpenAIResponses, AnthropicMessages}

// unpinged is a stream without its pings, which overtake text that waits: the
// first letters of a word that may become a token.
func unpinged(out []byte) []byte { return pings.ReplaceAll(out, nil) }

func TestRecordedStreamsPassUntouched(t *testing.T) {
	for _, f := range all {
		chain := patterns(t, guard.Redact, "secrets", "credentials")
		n := 0
		for name, payloads := range recorded(t, f.Name()) {
			upstream := serve(f, payloads)
			for _, size := range []int{1 << 30, 1000, 7} {
				out, ds, o := stream(f, Options{Chain: chain, Usage: true}, upstream, size)
				out, want := unpinged(out), unpinged(upstream)
				last := payloads[len(payloads)-1]
				switch {
				case strings.HasPrefix(last, `{"error"`) || strings.HasPrefix(last, `{"type":"error"`) || strings.HasPrefix(last, `{"type":"response.failed"`):
					if o.Status != UpstreamFailed {
						t.Errorf("%s: an error at the end gives %+v", name, o)
					}
					if f != OpenAIChat && !bytes.Equal(out, want) {
						t.Errorf("%s: an error became\n%s", name, out)
					}
					continue
				}
				if !bytes.Equal(out, want) || o.Status != Allowed {
					at := 0
					for at < len(out) && at < len(want) && out[at] == want[at] {
						at++
					}
					t.Errorf("%s in pieces of %d: %+v %v\nat %d of %d (%d):\n%s\nwant\n%s", name, size, o, ds, at, len(want), len(out), clip(out, at), clip(want, at))
					break
				}
			}
			n++
		}
		t.Logf("%s: %d streams", f.Name(), n)
	}
}

func clip(b []byte, at int) []byte { return b[max(0, at-200):min(len(b), at+300)] }
