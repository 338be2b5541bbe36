package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// examples are streams and the frames in them, written down by hand.
var examples = []struct {
	name   string
	stream string
	want   []Frame
}{
	{"nothing", "", nil},
	{"event", "event: delta\ndata: {}\n\n", []Frame{
		{Raw: b("event: delta\ndata: {}\n\n"), Event: b("delta"), Data: b("{}"), DataAt: 19, Lines: 1}}},
	{"two events", "data: 1\n\ndata: 2\n\n", []Frame{
		{Raw: b("data: 1\n\n"), Data: b("1"), DataAt: 6, Lines: 1},
		{Raw: b("data: 2\n\n"), Data: b("2"), DataAt: 6, Lines: 1}}},
	{"no space after the colon", "data:x\n\n", []Frame{
		{Raw: b("data:x\n\n"), Data: b("x"), DataAt: 5, Lines: 1}}},
	{"one space of two is the value's", "data:  x \n\n", []Frame{
		{Raw: b("data:  x \n\n"), Data: b(" x "), DataAt: 6, Lines: 1}}},
	{"colons in the value", "data: a:b: c\n\n", []Frame{
		{Raw: b("data: a:b: c\n\n"), Data: b("a:b: c"), DataAt: 6, Lines: 1}}},
	{"several data lines", "data: a\ndata:\ndata: b\n\n", []Frame{
		{Raw: b("data: a\ndata:\ndata: b\n\n"), Data: b("a\n\nb"), DataAt: -1, Lines: 3}}},
	{"empty data", "data:\n\n", []Frame{
		{Raw: b("data:\n\n"), Data: b(""), DataAt: 5, Lines: 1}}},
	{"data without a colon", "data\n\n", []Frame{
		{Raw: b("data\n\n"), Data: b(""), DataAt: -1, Lines: 1}}},
	{"event without data", "event: ping\n\n", []Frame{
		{Raw: b("event: ping\n\n"), Event: b("ping"), DataAt: -1}}},
	{"empty event", "event\ndata: x\n\n", []Frame{
		{Raw: b("event\ndata: x\n\n"), Event: b(""), Data: b("x"), DataAt: 12, Lines: 1}}},
	{"the last event field counts and the first is announced", "event: a\nevent: b\ndata: x\n\n", []Frame{
		{Raw: b("event: a\nevent: b\ndata: x\n\n"), Event: b("b"), Data: b("x"), DataAt: 24, Lines: 1, Other: true}}},
	{"event after data", "data: x\nevent: late\n\n", []Frame{
		{Raw: b("data: x\nevent: late\n\n"), Event: b("late"), Data: b("x"), DataAt: 6, Lines: 1}}},
	{"field names keep their case and spaces", "Data: x\n data: y\ndata : z\n\n", []Frame{
		{Raw: b("Data: x\n data: y\ndata : z\n\n"), DataAt: -1, Other: true}}},
	{"id, retry and unknown fields", "id: 7\nretry: 10\nwhatever\ndata: x\n\n", []Frame{
		{Raw: b("id: 7\nretry: 10\nwhatever\ndata: x\n\n"), Data: b("x"), DataAt: 31, Lines: 1, Other: true}}},
	{"NUL in the id", "id: a\x00b\ndata: x\n\n", []Frame{
		{Raw: b("id: a\x00b\ndata: x\n\n"), Data: b("x"), DataAt: 14, Lines: 1, Other: true}}},
	{"comment between events", "data: 1\n\n: ping\n\ndata: 2\n\n", []Frame{
		{Raw: b("data: 1\n\n"), Data: b("1"), DataAt: 6, Lines: 1},
		{Raw: b(": ping\n"), DataAt: -1, Comment: true, Other: true},
		{Raw: b("data: 2\n\n"), Data: b("2"), DataAt: 6, Lines: 1}}},
	{"comments before an event", ":a\n:\ndata: 1\n\n", []Frame{
		{Raw: b(":a\n"), DataAt: -1, Comment: true, Other: true},
		{Raw: b(":\n"), DataAt: -1, Comment: true, Other: true},
		{Raw: b("data: 1\n\n"), Data: b("1"), DataAt: 6, Lines: 1}}},
	{"comment inside an event", "data: 1\n: ping\ndata: 2\n\n", []Frame{
		{Raw: b("data: 1\n: ping\ndata: 2\n\n"), Data: b("1\n2"), DataAt: -1, Lines: 2, Other: true}}},
	{"blank lines that end nothing", "\n\ndata: 1\n\n\n\n", []Frame{
		{Raw: b("data: 1\n\n"), Data: b("1"), DataAt: 6, Lines: 1}}},
	{"CRLF", "event: a\r\ndata: 1\r\n\r\ndata: 2\n\n", []Frame{
		{Raw: b("event: a\ndata: 1\n\n"), Event: b("a"), Data: b("1"), DataAt: 15, Lines: 1, Mended: true},
		{Raw: b("data: 2\n\n"), Data: b("2"), DataAt: 6, Lines: 1}}},
	{"CR", "event: a\rdata: 1\r\rdata: 2\r\r", []Frame{
		{Raw: b("event: a\ndata: 1\n\n"), Event: b("a"), Data: b("1"), DataAt: 15, Lines: 1, Mended: true},
		{Raw: b("data: 2\n\n"), Data: b("2"), DataAt: 6, Lines: 1, Mended: true}}},
	{"line ends mixed", "data: 1\r\n\n\r\ndata: 2\n\rdata: 3\r\n\rdata: 4\n\r\n", []Frame{
		{Raw: b("data: 1\n\n"), Data: b("1"), DataAt: 6, Lines: 1, Mended: true},
		{Raw: b("data: 2\n\n"), Data: b("2"), DataAt: 6, Lines: 1, Mended: true},
		{Raw: b("data: 3\n\n"), Data: b("3"), DataAt: 6, Lines: 1, Mended: true},
		{Raw: b("data: 4\n\n"), Data: b("4"), DataAt: 6, Lines: 1, Mended: true}}},
	{"comment in CRLF", ": a\r\n\r\ndata: 1\n\n", []Frame{
		{Raw: b(": a\n"), DataAt: -1, Comment: true, Other: true, Mended: true},
		{Raw: b("data: 1\n\n"), Data: b("1"), DataAt: 6, Lines: 1}}},
	{"byte order mark", "\ufeffdata: 1\n\ndata: 2\n\n", []Frame{
		{Raw: b("data: 1\n\n"), Data: b("1"), DataAt: 6, Lines: 1, Mended: true},
		{Raw: b("data: 2\n\n"), Data: b("2"), DataAt: 6, Lines: 1}}},
	{"byte order mark later", "data: 1\n\n\ufeffdata: 2\n\n", []Frame{
		{Raw: b("data: 1\n\n"), Data: b("1"), DataAt: 6, Lines: 1},
		{Raw: b("\ufeffdata: 2\n\n"), DataAt: -1, Other: true}}},
	{"byte order mark twice", "\ufeff\ufeffdata: 1\n\n", []Frame{
		{Raw: b("\ufeffdata: 1\n\n"), DataAt: -1, Other: true, Mended: true}}},
	{"byte order mark alone", "\ufeff", nil},
	{"byte order mark cut", "\xef\xbb", []Frame{
		{Raw: b("\xef\xbb\n\n"), DataAt: -1, Other: true, Mended: true, Unterminated: true}}},
	{"ends inside a line", "data: 1\n\ndata: 2", []Frame{
		{Raw: b("data: 1\n\n"), Data: b("1"), DataAt: 6, Lines: 1},
		{Raw: b("data: 2\n\n"), Data: b("2"), DataAt: 6, Lines: 1, Mended: true, Unterminated: true}}},
	{"ends before the blank line", "data: 1\ndata: 2\n", []Frame{
		{Raw: b("data: 1\ndata: 2\n\n"), Data: b("1\n2"), DataAt: -1, Lines: 2, Mended: true, Unterminated: true}}},
	{"ends in half a CRLF", "data: 1\r\n\r", []Frame{
		{Raw: b("data: 1\n\n"), Data: b("1"), DataAt: 6, Lines: 1, Mended: true}}},
	{"ends inside a comment", ": pi", []Frame{
		{Raw: b(": pi\n"), DataAt: -1, Comment: true, Other: true, Mended: true, Unterminated: true}}},
	{"runes", "data: añ€😀\n\n", []Frame{
		{Raw: b("data: añ€😀\n\n"), Data: b("añ€😀"), DataAt: 6, Lines: 1}}},
}

func b(s string) []byte { return []byte(s) }

// scan feeds a stream in pieces, asking for frames after each.
func scan(pieces ...string) []Frame {
	var frames []Frame
	s := NewScanner(0)
	ask := func() {
		for {
			f, ok, err := s.Next()
			if err != nil {
				panic(err)
			}
			if !ok {
				return
			}
			frames = append(frames, clone(f))
		}
	}
	for _, p := range pieces {
		s.Write([]byte(p))
		ask()
	}
	s.Close()
	ask()
	return frames
}

func TestExamples(t *testing.T) {
	for _, ex := range examples {
		t.Run(ex.name, func(t *testing.T) {
			if diff := cmp.Diff(ex.want, scan(ex.stream)); diff != "" {
				t.Errorf("frames of %q (-want +got):\n%s", ex.stream, diff)
			}
			if diff := cmp.Diff(ex.want, reference(ex.stream)); diff != "" {
				t.Errorf("the reference differs for %q (-want +got):\n%s", ex.stream, diff)
			}
		})
	}
}

// TestCuts reads every example cut at every pair of places, and byte by byte.
func TestCuts(t *testing.T) {
	for _, ex := range examples {
		check := func(pieces ...string) {
			if diff := cmp.Diff(ex.want, scan(pieces...)); diff != "" {
				t.Fatalf("%s: frames of %q (-want +got):\n%s", ex.name, pieces, diff)
			}
		}
		check(strings.Split(ex.stream, "")...)
		for i := range len(ex.stream) + 1 {
			for j := i; j <= len(ex.stream); j++ {
				check(ex.stream[:i], ex.stream[i:j], ex.stream[j:])
			}
		}
	}
}

// TestAtOnce shows that each frame comes with the byte that ends it.
func TestAtOnce(t *testing.T) {
	for _, tt := range []struct{ stream, rest string }{
		{"data: 1\n\n", ""},
		{"data: 1\r\r", ""},
		{"data: 1\r\n\r", "\n"},
		{": ping\n", ""},
		{": ping\r", "\n"},
	} {
		s := NewScanner(0)
		for i := range tt.stream {
			if f, ok, err := s.Next(); ok || err != nil {
				t.Errorf("%q: after %d bytes: frame %q, error %v", tt.stream, i, f.Raw, err)
			}
			s.Write([]byte{tt.stream[i]})
		}
		if _, ok, err := s.Next(); !ok || err != nil {
			t.Errorf("%q: no frame at its end, error %v", tt.stream, err)
		}
		s.Write([]byte(tt.rest))
		s.Close()
		if f, ok, err := s.Next(); ok || err != nil {
			t.Errorf("%q then %q: another frame %q, error %v", tt.stream, tt.rest, f.Raw, err)
		}
	}
}

// TestFramesLiveUntilWrite takes all frames of one write and looks at them
// when the last was taken.
func TestFramesLiveUntilWrite(t *testing.T) {
	var stream strings.Builder
	var want []string
	for i := range 100 {
		fmt.Fprintf(&stream, "data: %d\r\ndata: x\n\n: %d\n", i, i)
		want = append(want, fmt.Sprintf("%d\nx", i), fmt.Sprintf(": %d\n", i))
	}
	s := NewScanner(0)
	s.Write([]byte(stream.String()))
	var frames []Frame
	for {
		f, ok, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		frames = append(frames, f)
	}
	var got []string
	for _, f := range frames {
		if f.Comment {
			got = append(got, string(f.Raw))
		} else {
			got = append(got, string(f.Data))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAppendToFrame shows that appending to a frame's slices leaves the
// scanner's own bytes alone.
func TestAppendToFrame(t *testing.T) {
	s := NewScanner(0)
	s.Write([]byte("event: a\ndata: 1\n\ndata: 2\n\n"))
	f, _, _ := s.Next()
	_, _, _ = append(f.Raw, "XXXXXXXX"...), append(f.Event, "XX"...), append(f.Data, "XX"...)
	if got := string(f.Raw); got != "event: a\ndata: 1\n\n" {
		t.Errorf("first frame became %q", got)
	}
	if f, _, _ = s.Next(); string(f.Raw) != "data: 2\n\n" {
		t.Errorf("second frame became %q", f.Raw)
	}
}

// TestTooLong cuts a stream everywhere: the frames before the long one come,
// then the error, again and again, at the same limit for every cut.
func TestTooLong(t *testing.T) {
	for _, tt := range []struct {
		stream string
		max    int
		frames int // before the error
		long   bool
	}{
		{"data: 12\n\n", 10, 1, false},
		{"data: 12\n\n", 9, 0, true},
		{"data: 1\n\ndata: 123\n\ndata: 4\n\n", 10, 1, true},
		{"data: 1\r\n\r\n", 9, 1, false},
		{"data: 1\r\n\r\n", 8, 0, true},
		{"a\nb\nc\nd\ne\n", 9, 0, true},
		{"\ufeffdata: 1\n\n", 9, 1, false},
		{"data: 1", 9, 1, false},
		{"data: 1", 8, 0, true},
		{": 12345\n", 8, 1, false},
		{": 12345\n", 7, 0, true},
		{"\n\n\n\n\n\n\n\n\n\ndata: 1\n\n", 9, 1, false},
	} {
		for cut := range len(tt.stream) + 1 {
			s, frames := NewScanner(tt.max), 0
			ask := func() (err error) {
				for ok := true; ok && err == nil; {
					if _, ok, err = s.Next(); ok {
						frames++
					}
				}
				return err
			}
			s.Write([]byte(tt.stream[:cut]))
			ask()
			s.Write([]byte(tt.stream[cut:]))
			ask()
			s.Close()
			err := ask()
			var long *TooLongError
			if errors.As(err, &long) != tt.long || frames != tt.frames {
				t.Errorf("%q cut at %d, limit %d: %d frames, error %v", tt.stream, cut, tt.max, frames, err)
				continue
			}
			if tt.long && (*long != TooLongError{Frame: int64(tt.frames) + 1, Max: tt.max} || ask() != err) {
				t.Errorf("%q cut at %d: error %v, then %v", tt.stream, cut, err, ask())
			}
		}
	}
}

// TestTooLongHoldsLittle shows that a line without end is given up at the
// limit, not at memory's end.
func TestTooLongHoldsLittle(t *testing.T) {
	s := NewScanner(1 << 10)
	piece := bytes.Repeat([]byte("x"), 64)
	for i := range 1 << 20 {
		s.Write(piece)
		if _, _, err := s.Next(); err != nil {
			if want := 1<<10/len(piece) + 1; i+1 != want {
				t.Errorf("error after %d pieces, want %d", i+1, want)
			}
			s.Write(piece)
			if len(s.buf) != 0 {
				t.Errorf("the scanner keeps %d bytes after its error", len(s.buf))
			}
			return
		}
	}
	t.Error("no error")
}

func TestWriteAfterClosePanics(t *testing.T) {
	s := NewScanner(0)
	s.Close()
	defer func() {
		if recover() == nil {
			t.Error("Write after Close did not panic")
		}
	}()
	s.Write([]byte("x"))
}

// TestBufferStaysSmall feeds a long stream in pieces that never end with a
// frame, so that something is always held.
func TestBufferStaysSmall(t *testing.T) {
	s := NewScanner(0)
	stream := bytes.Repeat([]byte("data: 0123456789\n\n"), 1000)
	s.Write(stream[:7])
	for i := range 1000 {
		s.Write(stream[7:])
		s.Write(stream[:7])
		for ok := true; ok; {
			_, ok, _ = s.Next()
		}
		if cap(s.buf) > 4*len(stream) {
			t.Fatalf("after %d bytes the buffer has %d", (i+1)*len(stream), cap(s.buf))
		}
	}
}

func TestScan(t *testing.T) {
	for _, ex := range examples {
		for name, r := range map[string]io.Reader{
			"whole":    strings.NewReader(ex.stream),
			"bytewise": iotest.OneByteReader(strings.NewReader(ex.stream)),
			"with EOF": iotest.DataErrReader(strings.NewReader(ex.stream)),
		} {
			var got []Frame
			for f, err := range Scan(r, 0) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, clone(f))
			}
			if diff := cmp.Diff(ex.want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", ex.name, name, diff)
			}
		}
	}
}

func TestScanErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		r    io.Reader
		is   error
	}{
		{"reader fails", io.MultiReader(strings.NewReader("data: 1\n\ndata: 2"), iotest.ErrReader(broken)), broken},
		{"unexpected end", io.MultiReader(strings.NewReader("data: 1\n\ndata: 2"), iotest.ErrReader(io.ErrUnexpectedEOF)), io.ErrUnexpectedEOF},
	} {
		var got []string
		var last error
		for f, err := range Scan(tt.r, 0) {
			if last = err; err == nil {
				got = append(got, string(f.Data))
			}
		}
		if !slices.Equal(got, []string{"1"}) || !errors.Is(last, tt.is) || last.Error() != "read event stream: "+tt.is.Error() {
			t.Errorf("%s: data %q, error %v", tt.name, got, last)
		}
	}
	var long *TooLongError
	for _, err := range Scan(strings.NewReader("data: 1\n\n"), 4) {
		if !errors.As(err, &long) || err.Error() != "read event stream: frame 1 is longer than 4 bytes" {
			t.Errorf("error %v", err)
		}
	}
	for range Scan(strings.NewReader("data: 1\n\ndata: 2\n\n"), 0) {
		break // the loop may end early
	}
}
