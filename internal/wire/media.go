package wire

import (
	"bytes"
	base "encoding/base64"
	"strings"

	"github.com/stoplog/stoplog/guard"
)

// Media says which parts of requests that no guard can read may be sent. The zero
// value lets all of them pass; that is recorded for each.
type Media struct{ NoImages, NoAudio, NoFiles bool }

// Rules of decisions about media, of the guard that is named so.
const (
	mediaGuard = "media"
	ruleImage  = "image"
	ruleAudio  = "audio"
	ruleFile   = "file"
)

// denies reports whether a kind of media may not be sent.
func (m Media) denies(rule string) bool {
	return rule == ruleImage && m.NoImages || rule == ruleAudio && m.NoAudio || rule == ruleFile && m.NoFiles
}

// mediaTypes are the parts of messages that are media, by what formats call them.
var mediaTypes = map[string]string{
	"image_url": ruleImage, "image": ruleImage, "input_image": ruleImage, "computer_screenshot": ruleImage,
	"input_audio": ruleAudio, "audio": ruleAudio, "output_audio": ruleAudio,
	"file": ruleFile, "input_file": ruleFile, "container_upload": ruleFile,
}

// A place in a document: where a part of a message stands.
type place struct {
	idx   [4]int32
	depth uint8
}

// judgeMedia records the media of a request, and reports whether one of them may
// not be sent. A file of text is none: it is judged.
func (b *document) judgeMedia(policy Media) (stopped bool) {
	known := map[place]bool{}
	for i := range b.leaves {
		if l := &b.leaves[i]; l.kind == Embedded {
			known[place{l.idx, l.depth}] = true
		}
	}
	for pass := range 2 { // what parts are called, then what they hold
		for i := range b.leaves {
			l := &b.leaves[i]
			at := place{l.idx, l.depth}
			if l.node == nil || l.token != '"' || known[at] {
				continue
			}
			rule := b.mediaType(l)
			if pass > 0 {
				rule = b.mediaHeld(l)
			}
			if rule == "" {
				continue
			}
			known[at] = true
			stopped = b.decideMedia(policy, rule, b.path(*l)) || stopped
		}
	}
	return stopped
}

func (b *document) decideMedia(policy Media, rule, channel string) (denied bool) {
	d := guard.Decision{Finding: guard.Finding{Guard: mediaGuard, Rule: rule}, Mode: guard.Enforce}
	if denied = policy.denies(rule); denied {
		d.Verdict = guard.Deny
		b.outcome.stopped(channel, &guard.Stop{Verdict: guard.Deny, Guard: mediaGuard, Rule: rule})
	}
	b.decide(channel, d)
	return denied
}

// mediaType is what media a part says it is, empty if none.
func (b *document) mediaType(l *leaf) string {
	said := string(b.content(b.doc, l))
	switch l.node.channel {
	case "part-type":
		return mediaTypes[said]
	case "source-type": // of Anthropic: text and content are judged
		if said == "base64" || said == "url" || said == "file" {
			return ruleFile
		}
	}
	return ""
}

// mediaHeld is what media a field holds that is opaque, whatever its part says.
func (b *document) mediaHeld(l *leaf) string {
	if l.kind != Opaque {
		return ""
	}
	switch l.node.channel {
	case "data-url":
		for start, rule := range map[string]string{`"data:image/`: ruleImage, `"data:audio/`: ruleAudio} {
			if bytes.HasPrefix(bytes.ToLower(b.doc[l.from:min(l.to, l.from+16)]), []byte(start)) {
				return rule
			}
		}
		return ruleFile
	case "source":
		return ruleFile
	case "sound":
		return ruleAudio
	}
	return ""
}

// unreadable reports whether data of a media type is such that no guard reads it.
// All else is text, or is read as if it were.
func unreadable(mediaType []byte) bool {
	kind, sub, ok := strings.Cut(strings.ToLower(string(mediaType)), "/")
	switch kind {
	case "image":
		return ok && !strings.HasPrefix(sub, "svg")
	case "audio", "video", "font":
		return ok
	case "application":
		return sub == "pdf" || sub == "zip" || sub == "gzip" || sub == "msword" || strings.HasPrefix(sub, "vnd.")
	}
	return false
}

// embedded judges a file of text that a string holds in base64, and returns the
// splice that findings in it ask for.
func (j *judgement) embedded(doc []byte, l *leaf) (splice, error) {
	said := j.content(doc, l)
	head, data := []byte(nil), said
	if _, after, ok := bytes.Cut(said, []byte(";base64,")); ok {
		head, data = said[:len(said)-len(after)], after
	}
	text, err := base.StdEncoding.DecodeString(string(data))
	if err != nil {
		u := *l.unknown()
		return j.whole(doc, &u)
	}
	head = bytes.Clone(head)
	r := j.screen(l.node.path, text)
	if r.stop != nil {
		return splice{}, refusal(l.node.path, r)
	}
	if r.edits == nil {
		return splice{}, nil
	}
	changed := appendRun(nil, text, true, 0, 0, int64(len(text)), r.edits)
	return splice{l.from + 1, l.to - 1, base.StdEncoding.AppendEncode(head, changed)}, nil
}
