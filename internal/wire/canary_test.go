package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// A canary is a secret that is planted in a stream, in a way that a provider
// could say it. It never reaches the client, and the stream still parses.

const card = "4111111111111111"

// thinned is a stream without most of its middle, for streams of hundreds of
// deltas: canaries are planted one at a time.
func thinned(payloads []string) []string {
	const most = 60
	if len(payloads) <= 2*most {
		return payloads
	}
	return slices.Concat(payloads[:most], payloads[len(payloads)-most:])
}

// decoded is a payload with its numbers as they are written.
func decoded(payload string) any {
	d := json.NewDecoder(strings.NewReader(payload))
	d.UseNumber()
	var doc any
	if d.Decode(&doc) != nil {
		return nil
	}
	return doc
}

// visit calls f with each value of a document that is no structure, its path,
// and what replaces it.
func visit(v any, path string, set func(any), f func(v any, path string, set func(any))) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			visit(v[k], path+"."+k, func(x any) { v[k] = x }, f)
		}
	case []any:
		for i, m := range v {
			visit(m, path+"[]", func(x any) { v[i] = x }, f)
		}
	default:
		f(v, path, set)
	}
}

// canaries runs streams with canaries and checks what comes of them.
type canaries struct {
	t     *testing.T
	f     *Format
	chain *guard.Chain
	n     int
}

func (c *canaries) release(where string, payloads []string, secret string) {
	c.t.Helper()
	c.n++
	out, _, o := stream(c.f, Options{Chain: c.chain, Usage: true, Run: "r"}, serve(c.f, payloads), 1<<20)
	if bytes.Contains(out, []byte(secret)) {
		c.t.Errorf("%s: a canary passed (%+v)", where, o)
	}
	said := map[string]string{} // what each place says over all events
	for _, payload := range events(c.t, c.f, out) {
		visit(decoded(payload), "", nil, func(v any, path string, _ func(any)) {
			if s, ok := v.(string); ok {
				said[path] += s
			}
		})
	}
	for path, text := range said {
		if strings.Contains(text, secret) {
			c.t.Errorf("%s: a canary passed in pieces, in %s (%+v)", where, path, o)
		}
	}
	if o.Status == Allowed {
		c.t.Errorf("%s: a canary was not noticed", where)
	}
}

// with is the stream with one payload replaced.
func with(payloads []string, i int, doc any) []string {
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return slices.Concat(payloads[:i], []string{string(b)}, payloads[i+1:])
}

// TestCanaryInNumbers puts a card's number in the place of every number.
func TestCanaryInNumbers(t *testing.T) {
	for _, f := range all {
		c := &canaries{t: t, f: f, chain: patterns(t, guard.Redact, "secrets", "pii")}
		for name, payloads := range recorded(t, f.Name()) {
			payloads = thinned(payloads)
			seen := map[string]int{}
			for i, p := range payloads {
				doc := decoded(p)
				visit(doc, "", func(any) {}, func(v any, path string, set func(any)) {
					n, ok := v.(json.Number)
					if !ok || isOpaque(f, path) {
						return
					}
					if seen[path]++; seen[path] > 2 {
						return
					}
					set(json.Number(card))
					c.release(fmt.Sprintf("%s: %s of frame %d", name, path, i), with(payloads, i, doc), card)
					set(n)
				})
			}
		}
		t.Logf("%s: %d canaries", f.Name(), c.n)
		if c.n < 100 {
			t.Errorf("%s: only %d canaries", f.Name(), c.n)
		}
	}
}

// TestCanaryCutInTwo lets a text end with the first half of a secret where the
// next event of its channel begins with the second.
func TestCanaryCutInTwo(t *testing.T) {
	for _, f := range all {
		c := &canaries{t: t, f: f, chain: patterns(t, guard.Redact, "secrets")}
		for name, payloads := range recorded(t, f.Name()) {
			payloads = thinned(payloads)
			seen := map[string]int{}
			for i := range len(payloads) - 1 {
				first, second := decoded(payloads[i]), decoded(payloads[i+1])
				if !follows(first, second) {
					continue
				}
				visit(first, "", func(any) {}, func(v any, path string, set func(any)) {
					text, ok := v.(string)
					if seen[path]++; !ok || !isDelta(f, payloads[i], path) || seen[path] > 4 {
						return
					}
					visit(second, "", func(any) {}, func(v2 any, path2 string, set2 func(any)) {
						next, ok := v2.(string)
						if !ok || path2 != path {
							return
						}
						set(text + " " + planted[:20])
						set2(planted[20:] + " " + next)
						cut := with(with(payloads, i, first), i+1, second)
						c.release(fmt.Sprintf("%s: %s of frames %d and %d", name, path, i, i+1), cut, planted)
						set(text)
						set2(next)
					})
				})
			}
		}
		t.Logf("%s: %d canaries", f.Name(), c.n)
		if c.n < 20 {
			t.Errorf("%s: only %d canaries", f.Name(), c.n)
		}
	}
}

// follows reports whether an event goes on where another stopped: they are alike
// but for what they say.
func follows(a, b any) bool {
	about := func(v any) string {
		var at []string
		visit(v, "", nil, func(v any, path string, _ func(any)) {
			if _, ok := v.(json.Number); ok && strings.HasSuffix(path, "index") || strings.HasSuffix(path, ".type") {
				at = append(at, fmt.Sprint(path, v))
			}
		})
		return strings.Join(at, " ")
	}
	return about(a) == about(b)
}

// isDelta reports whether a field is one that goes on in the next event.
func isDelta(f *Format, payload, path string) bool {
	table, _, err := f.dialect().table([]byte(payload), nil)
	if err != nil || table == nil {
		return false
	}
	found := false
	walk(table.root, func(n *node) { // each citation is a text of its own
		found = found || (n.kind == Text || n.kind == JSON) && n.isStream && n.channel != "citation" && "."+n.path == path
	})
	return found
}

// TestCanaryInUnknownFields adds fields that no table knows, at random depths:
// with the secret as text, as a name, in an array, in a document of its own.
func TestCanaryInUnknownFields(t *testing.T) {
	shapes := []func() any{
		func() any { return "x " + planted },
		func() any { return []any{1, []any{planted}} },
		func() any { return map[string]any{"deep": map[string]any{"deeper": []any{planted}}} },
		func() any { return map[string]any{planted: true} },
		func() any {
			return map[string]any{"type": planted, "text": "a", "content": []any{map[string]any{"text": planted}}}
		},
	}
	for _, f := range all {
		c := &canaries{t: t, f: f, chain: patterns(t, guard.Redact, "secrets")}
		rnd := rand.New(rand.NewPCG(1, 2))
		streams := recorded(t, f.Name())
		for _, name := range slices.Sorted(maps.Keys(streams)) {
			payloads := thinned(streams[name])
			for range 20 {
				i := rnd.IntN(len(payloads))
				doc := decoded(payloads[i])
				var objects []map[string]any
				collect(doc, &objects)
				if len(objects) == 0 {
					continue
				}
				into := objects[rnd.IntN(len(objects))]
				into["new_field"] = shapes[rnd.IntN(len(shapes))]()
				c.release(fmt.Sprintf("%s: an unknown field in frame %d: %v", name, i, into["new_field"]), with(payloads, i, doc), planted)
			}
		}
		t.Logf("%s: %d canaries", f.Name(), c.n)
	}
}

// collect finds the objects of a document.
func collect(v any, into *[]map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		*into = append(*into, v)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			collect(v[k], into)
		}
	case []any:
		for _, m := range v {
			collect(m, into)
		}
	}
}
