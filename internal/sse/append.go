package sse

import "bytes"

// AppendEvent appends an event: its event: line unless the name is empty, a
// data: line for each line of data (one for empty data, without which a client
// would not dispatch the event), and the blank line. CR and CRLF in data end
// lines too, as they would for the reader. An event name is one line; what
// follows its first line end is left out.
func AppendEvent(dst []byte, event string, data []byte) []byte {
	if event != "" {
		name, _, _ := nextLine([]byte(event))
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	for more := true; more; {
		var line []byte
		line, data, more = nextLine(data)
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return append(dst, '\n')
}

// AppendComment appends a comment, a line for each of the text's lines, and no
// blank line: some clients dispatch an empty event for one. It may stand
// between events only.
func AppendComment(dst []byte, text string) []byte {
	rest := []byte(text)
	for more := true; more; {
		var line []byte
		line, rest, more = nextLine(rest)
		dst = append(append(append(dst, ": "...), line...), '\n')
	}
	return dst
}

// nextLine cuts text at its first line end, and reports whether there is one.
func nextLine(text []byte) (line, rest []byte, more bool) {
	i := bytes.IndexAny(text, "\r\n")
	if i < 0 {
		return text, nil, false
	}
	line, rest = text[:i], text[i+1:]
	if text[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return line, rest, true
}
