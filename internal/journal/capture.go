package journal

import (
	"fmt"
	"time"
)

// Capture says what of a run remains after it has ended. While it is open, what
// is needed to go on with it stays, whatever the capture.
//
//	            Structure   Text             Raw
//	none        –           –                –
//	metadata    for ever    –                –
//	redacted    for ever    Retention.Text   –
//	full        for ever    for ever         for ever
//
// Where the table has a dash the payload goes after Retention.Grace. The row and
// the chain remain in every case.
type Capture string

const (
	CaptureNone     Capture = "none"
	CaptureMetadata Capture = "metadata"
	CaptureRedacted Capture = "redacted" // also what the empty Capture means
	CaptureFull     Capture = "full"
)

// ParseCapture reads a capture's name; the empty one is [CaptureRedacted].
func ParseCapture(s string) (Capture, error) {
	switch c := Capture(s); c {
	case "":
		return CaptureRedacted, nil
	case CaptureNone, CaptureMetadata, CaptureRedacted, CaptureFull:
		return c, nil
	}
	return "", fmt.Errorf("unknown capture %q: want none, metadata, redacted or full", s)
}

// Retention says how long payloads stay after their run has ended. Its zero
// value is the default.
type Retention struct {
	// Grace lets those who follow a run read its end: 0 is a minute.
	Grace time.Duration
	// Text is how long screened text stays: 0 is 30 days.
	Text time.Duration
}

func (r Retention) orDefault() Retention {
	if r.Grace == 0 {
		r.Grace = time.Minute
	}
	if r.Text == 0 {
		r.Text = 30 * 24 * time.Hour
	}
	r.Text = max(r.Text, r.Grace)
	return r
}

// forEver is an age that no run reaches.
const forEver = time.Duration(1<<63 - 1)

// stay returns how long after the end of a run a payload stays.
func (r Retention) stay(capture Capture, content Content) time.Duration {
	r = r.orDefault()
	switch {
	case capture == CaptureFull, capture != CaptureNone && content == Structure:
		return forEver
	case (capture == CaptureRedacted || capture == "") && content == Text:
		return r.Text
	}
	return r.Grace
}

// Due returns the contents whose payloads are no longer kept at an age, counted
// from the run's end, and the age at which more will go; 0 if nothing will.
func (r Retention) Due(capture Capture, age time.Duration) (gone []Content, next time.Duration) {
	for _, c := range []Content{Structure, Text, Raw} {
		switch stay := r.stay(capture, c); {
		case stay <= age:
			gone = append(gone, c)
		case stay != forEver && (next == 0 || stay < next):
			next = stay
		}
	}
	return gone, next
}
