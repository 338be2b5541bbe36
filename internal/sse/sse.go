// Package sse reads and writes server-sent events as a proxy needs them:
// without losing a byte of what came, and without waiting for more than it
// must.
//
// A browser's parser turns a stream into events and forgets the rest. A proxy
// passes frames on, so here a [Frame] keeps the very bytes it came in beside
// what they mean:
//
//	event: delta ⏎          Raw    all four lines, as they came
//	data: {"text":"hi"} ⏎   Event  delta
//	id: 7 ⏎                 Data   {"text":"hi"}, at DataAt in Raw
//	⏎                       Other  there is an id: line that only Raw shows
//
// # Laws
//
// Cut invariance: the frames are a function of the stream's bytes alone, never
// of how they were cut into writes.
//
// Nothing hidden: every byte of a frame that is not the name of a field, a
// line end, Event or Data is announced by Other.
//
// No waiting: a frame is delivered with the byte that ends it. A lone CR ends
// a line at once; an LF that follows it, however late, belongs to it.
//
// Linear: each byte is looked at a fixed number of times, whatever the cuts
// and however long the line. Once warm, a frame costs no allocation.
//
// # Mends
//
// Clients differ in what they tolerate, so a frame is mended where every
// reading of the standard agrees on its meaning: line ends become LF, a byte
// order mark at the start of the stream goes, the last frame is terminated.
// Blank lines that end no frame are dropped, the one after a comment
// included: some clients dispatch an empty event for it.
//
// The standard is https://html.spec.whatwg.org/multipage/server-sent-events.html.
// It differs in one thing: a browser discards a last event that lacks its
// blank line. It is delivered here, marked Unterminated, since it holds text
// that somebody may see.
package sse

import "fmt"

// Frame is one event, or one comment line that stands before or between
// events.
//
// A comment between the lines of an event is part of that event. One that
// comes before an event's first field is a frame of its own, delivered with
// its line end: a heartbeat is of no use once it had to wait for the event
// that it bridges.
type Frame struct {
	// Raw is all of the frame's lines, mended: each ends in LF, and the last is
	// the blank line that terminates the event. A comment has no blank line.
	Raw []byte
	// Event is the value of the last event: field, nil if there is none.
	Event []byte
	// Data is the values of the data: fields, joined with LF; nil if there is
	// none. Where there is one such line it is a part of Raw.
	Data []byte
	// DataAt is the offset in Raw of Data if that is the value of one line, and
	// if the line has a colon, so that another value may be put in its place
	// (one without a line end and without a space at its start); else -1.
	DataAt int
	// Lines is the number of data: fields.
	Lines int
	// Comment says that the frame is a comment line.
	Comment bool
	// Other says that Raw has text that neither Event nor Data shows: a comment,
	// a field of another name, an event: field overruled by a later one.
	Other bool
	// Mended says that Raw is not as it came.
	Mended bool
	// Unterminated says that the stream ended inside the frame: inside a line,
	// or before an event's blank line.
	Unterminated bool
}

// TooLongError is the error for a frame longer than the scanner's limit.
type TooLongError struct {
	Frame int64 // its place in the stream, the first being 1
	Max   int   // the limit in bytes
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("read event stream: frame %d is longer than %d bytes", e.Frame, e.Max)
}
