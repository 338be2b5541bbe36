// Package wire reads and rewrites the formats in which providers speak, so
// that guards judge text and clients get frames.
//
//	upstream bytes ─► sse.Scanner ─► frame ─► scan: leaves with their kinds
//	                                   │             │ text, json
//	                                   │             ▼
//	                                   │        channel ─► guard.Stream
//	                                   ▼             │ settled, edits, stop
//	                        queue ◄──────────────────┘
//	                          │  a frame leaves when its last byte is settled
//	                          ▼  and nothing before it waits
//	                    client bytes: as they came, or spliced
//
// Every field of a format has a [Kind]; the tables in fields/ say which, and
// docs/wire-fields.md is printed from them. A field that no table names is
// screened all the same:
//
//   - text and json fields are channels: what one field says over many frames
//     is one text. So are fields that a table does not know but whose parent it
//     calls a stream, since those are cut into deltas like their siblings.
//   - what an OpenAI response says again (an event that ends a text, an item or
//     all of it) is found to repeat a channel by a keyed hash, and becomes what has
//     left of it; it is not judged again. A copy that says something else is a
//     text of its own.
//   - every other string and number is screened whole, each distinct value
//     once. A finding in a field that no table knows replaces its text; in one
//     that clients act on (an id, an enum, a number) it refuses the event.
//   - opaque fields pass untouched. They are few, pinned by a test, and each
//     gives its reason.
//
// What is not what its field is for (a number where text belongs, words where
// base64 does) is as if no table named it.
//
// # Laws
//
// The text of a channel that a client gets, and the decisions about it, are the
// same streamed and not, however the upstream cut it. There is one exception: a
// text is taken to have ended when another text of its lane begins, for else
// that one would wait. If it goes on after all, what has left stays, and what
// comes is judged together with the last of it.
//
// A frame that no finding touches leaves as the bytes that came, but for the
// mends of package sse; a chunk of several choices leaves as one chunk for each.
// In a frame that a finding touches, text changes inside its strings, a number
// becomes a string or null, and what repeats changed text becomes null.
//
// Nothing overtakes: in a lane (an OpenAI choice, a response, an Anthropic message) frames
// leave in the order in which they came, and the end waits for all. Comments
// and pings say nothing and do not wait.
//
// A tool call that a rule may stop leaves complete or not at all.
//
// What a stop ends stays ended: nothing of its lane follows but the end.
//
// Nothing here does I/O or reads a clock.
package wire
