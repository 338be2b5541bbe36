package main

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/sse"
)

// A meter compares what the model has said with what the client has got, in
// bytes of what the model said. A replacement hides how long the span was; the
// record says it.
type meter struct {
	got      int64 // bytes of the model's text that have left or were replaced
	spans    int   // replacements seen
	longest  int64
	most     int64
	sum      int64
	arrivals int64
}

// take notes a piece that came when the model had said so many bytes, and
// returns the lengths of the spans that were replaced in it.
func (m *meter) take(text string, said int64, records []govern.Record) (replaced []int64) {
	all := replacedSpans(records)
	m.got += int64(len(text))
	for _, at := range placeholder.FindAllStringIndex(text, -1) {
		if m.spans == len(all) {
			break // the model's own words look like a replacement
		}
		n := all[m.spans]
		m.spans++
		m.got += n - int64(at[1]-at[0])
		m.longest = max(m.longest, n)
		replaced = append(replaced, n)
	}
	waiting := max(0, said-m.got)
	m.most = max(m.most, waiting)
	m.sum += waiting
	m.arrivals++
	return replaced
}

func (m *meter) held() held {
	return held{Most: m.most, Mean: float64(m.sum) / float64(max(m.arrivals, 1)), Replaced: m.longest}
}

// replacedSpans are the lengths of what was replaced in the last run's text:
// findings that overlap are replaced as one.
func replacedSpans(records []govern.Record) (lengths []int64) {
	var found []govern.Verdict
	for _, r := range records {
		switch f := r.Fact.(type) {
		case govern.Started:
			found = nil
		case govern.Verdict:
			if f.Channel == "choice/0/content" && f.Mode == guard.Enforce && f.Verdict == guard.Redact {
				found = append(found, f)
			}
		}
	}
	slices.SortFunc(found, func(a, b govern.Verdict) int { return cmp.Compare(a.Start, b.Start) })
	end := int64(-1)
	for _, f := range found {
		if f.Start >= end {
			lengths = append(lengths, 0)
			end = f.Start
		}
		lengths[len(lengths)-1] += max(0, f.End-end)
		end = max(end, f.End)
	}
	return lengths
}

// A tap stands between the door and the cassette, and counts what the model has
// said so far: the client's side of the gateway cannot know.
type tap struct {
	door http.RoundTripper

	mu    sync.Mutex
	bytes int64
}

func (t *tap) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.door.RoundTrip(req)
	if err == nil {
		resp.Body = &tapped{ReadCloser: resp.Body, tap: t, frames: sse.NewScanner(0)}
	}
	return resp, err
}

func (t *tap) reset() { t.add(-t.said()) }

func (t *tap) add(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes += n
}

// said is how many bytes of text the model has said.
func (t *tap) said() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}

type tapped struct {
	io.ReadCloser
	tap    *tap
	frames *sse.Scanner
}

func (t *tapped) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.frames.Write(p[:n])
	for {
		f, ok, ferr := t.frames.Next()
		if !ok || ferr != nil {
			return n, err
		}
		var c chunk
		if json.Unmarshal(f.Data, &c) != nil {
			continue
		}
		for _, ch := range c.Choices {
			t.tap.add(int64(len(ch.Delta.Content)))
		}
	}
}
