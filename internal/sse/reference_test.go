package sse

import (
	"bytes"
	"regexp"
	"strings"
)

// reference is a second reader, written to be obvious: it takes the stream
// whole and copies everything.
func reference(stream string) []Frame {
	var frames []Frame
	var lines, ends []string // of the frame so far
	bom := strings.HasPrefix(stream, "\xef\xbb\xbf")
	first := bom // the frame so far begins where the byte order mark was
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")

	flush := func(cut bool) {
		f := Frame{DataAt: -1, Mended: first || cut, Unterminated: cut}
		var data []string
		events, offset := 0, 0
		for i, line := range lines {
			if ends[i] != "\n" {
				f.Mended = true
			}
			name, value, colon := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case line == "":
			case name == "data":
				data = append(data, value)
				if colon {
					f.DataAt = offset + len(line) - len(value)
				}
			case name == "event":
				f.Event = []byte(value)
				events++
			default:
				f.Other = true
			}
			f.Raw = append(f.Raw, line+"\n"...)
			offset += len(line) + 1
		}
		if data != nil {
			f.Data = []byte(strings.Join(data, "\n"))
		}
		f.Lines = len(data)
		if f.Lines != 1 {
			f.DataAt = -1
		}
		f.Other = f.Other || events > 1
		f.Comment = strings.HasPrefix(lines[0], ":")
		frames = append(frames, f)
	}

	for _, m := range regexp.MustCompile(`([^\r\n]*)(\r\n|\r|\n|$)`).FindAllStringSubmatch(stream, -1) {
		line, end := m[1], m[2]
		if line == "" && end == "" {
			break
		}
		if line == "" && len(lines) == 0 {
			first = false
			continue
		}
		lines, ends = append(lines, line), append(ends, end)
		switch {
		case lines[0][:min(1, len(lines[0]))] == ":":
			flush(end == "")
		case line == "":
			flush(false)
		default:
			continue
		}
		lines, ends, first = nil, nil, false
	}
	if len(lines) > 0 {
		lines, ends = append(lines, ""), append(ends, "\n")
		flush(true)
	}
	return frames
}

// clone keeps a frame beyond its life.
func clone(f Frame) Frame {
	f.Raw, f.Event, f.Data = bytes.Clone(f.Raw), bytes.Clone(f.Event), bytes.Clone(f.Data)
	return f
}
