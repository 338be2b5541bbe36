package journal

import (
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// TextReleased is the event of text that was shown while a model answered:
// version 1, payload [Released], Text. The texts of a channel, joined, are what
// was shown on it; where they are cut means nothing.
const TextReleased = "text_released"

// Released is a segment of a channel's released text.
type Released struct {
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"` // at the step's model call; a later one supersedes it
	Channel string `json:"channel"`
	Start   int64  `json:"start"` // of Text, in bytes of the channel's text
	Text    string `json:"text"`
}

// Entry returns the event that records the segment.
func (r Released) Entry() (Entry, error) { return NewEntry(TextReleased, 1, Text, r) }

const (
	// segmentTime is how long released text waits to be journaled: a reader who
	// comes back sees text at most so old.
	segmentTime = 200 * time.Millisecond
	// segmentBytes is how much text waits: the cost of an event is small beside it.
	segmentBytes = 4 << 10
)

// Segments gathers the text that one model call releases into segments, so that
// a stream of deltas of a few bytes is not as many events. Set Step and Attempt;
// the zero value is ready. Time comes in.
type Segments struct {
	Step, Attempt int

	done  []segment // in order of arrival: one ends where the channel changes
	began time.Time
	bytes int
	ends  map[string]int64  // of each channel's text in segments
	cut   map[string]string // the beginning of a rune whose end has not come
}

type segment struct {
	channel string
	start   int64
	text    []byte
}

// From says how much of each channel's text there is already, where a call goes
// on that was taken up before.
func (s *Segments) From(ends map[string]int64) { s.ends = maps.Clone(ends) }

// Ends returns how much of each channel's text there is.
func (s *Segments) Ends() map[string]int64 { return maps.Clone(s.ends) }

// Add takes the next text of a channel. Text may be cut inside a rune: such a
// rune goes whole into the segment of its end.
func (s *Segments) Add(channel, text string, now time.Time) {
	text = s.cut[channel] + text
	whole := text[:len(text)-partial(text)]
	if s.cut == nil {
		s.cut = map[string]string{}
	}
	s.cut[channel] = text[len(whole):]
	s.add(channel, whole, now)
}

func (s *Segments) add(channel, text string, now time.Time) {
	if text == "" {
		return
	}
	if s.bytes == 0 {
		s.began = now
	}
	if n := len(s.done); n == 0 || s.done[n-1].channel != channel {
		s.done = append(s.done, segment{channel: channel, start: s.ends[channel]})
	}
	last := &s.done[len(s.done)-1]
	last.text = append(last.text, text...)
	if s.ends == nil {
		s.ends = map[string]int64{}
	}
	s.ends[channel] += int64(len(text))
	s.bytes += len(text)
}

// partial returns how many bytes at the end of text begin a rune and do not end it.
func partial(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// Due returns when what was gathered is to be journaled; the zero time if there
// is nothing, and a time that has passed if it is enough.
func (s *Segments) Due() time.Time {
	switch {
	case s.bytes == 0:
		return time.Time{}
	case s.bytes >= segmentBytes:
		return s.began
	}
	return s.began.Add(segmentTime)
}

// Take returns what was gathered, and begins anew.
func (s *Segments) Take() []Released {
	var taken []Released
	for _, d := range s.done {
		taken = append(taken, Released{
			Step: s.Step, Attempt: s.Attempt, Channel: d.channel, Start: d.start, Text: string(d.text),
		})
	}
	s.done, s.bytes = nil, 0
	return taken
}

// End says that no more text comes on any channel: what was held for the rest of
// a rune is text now. Take what there is then.
func (s *Segments) End(now time.Time) {
	for _, channel := range slices.Sorted(maps.Keys(s.cut)) {
		s.add(channel, s.cut[channel], now)
	}
	clear(s.cut)
}
