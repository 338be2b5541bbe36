package sse

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAppendEvent(t *testing.T) {
	for _, tt := range []struct{ event, data, want, read string }{
		{"", "{}", "data: {}\n\n", "{}"},
		{"ping", "{}", "event: ping\ndata: {}\n\n", "{}"},
		{"", "", "data: \n\n", ""},
		{"", " x", "data:  x\n\n", " x"},
		{"", "a\nb\n", "data: a\ndata: b\ndata: \n\n", "a\nb\n"},
		{"", "a\r\nb\rc\n\rd", "data: a\ndata: b\ndata: c\ndata: \ndata: d\n\n", "a\nb\nc\n\nd"},
		{"a\ndata: smuggled", "x", "event: a\ndata: x\n\n", "x"},
	} {
		got := AppendEvent([]byte("data: before\n\n"), tt.event, []byte(tt.data))
		if diff := cmp.Diff("data: before\n\n"+tt.want, string(got)); diff != "" {
			t.Errorf("event %q, data %q (-want +got):\n%s", tt.event, tt.data, diff)
		}
		frames := scan(string(got))
		if len(frames) != 2 || string(frames[1].Data) != tt.read || frames[1].Mended {
			t.Errorf("event %q, data %q: read again %+v", tt.event, tt.data, frames)
		}
	}
}

func TestAppendComment(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ": \n"},
		{"ping", ": ping\n"},
		{"a\r\ndata: smuggled", ": a\n: data: smuggled\n"},
	} {
		got := string(AppendComment(nil, tt.text))
		if got != tt.want {
			t.Errorf("comment %q: %q, want %q", tt.text, got, tt.want)
		}
		for _, f := range scan(got) {
			if !f.Comment || f.Mended {
				t.Errorf("comment %q: read again %+v", tt.text, f)
			}
		}
	}
}
