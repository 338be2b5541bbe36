package match

import (
	"encoding/base64"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
)

// Pieces of a value, in bytes: how long one is at most, and by how much two that
// follow each other overlap, so that their findings do in every form.
const (
	pieceLength  = 128
	pieceOverlap = 3
)

// mostForm is the length of the longest form: hexadecimal.
const mostForm = 2 * pieceLength

// formsOf returns what a value is looked for as, each once. Escapes are not among
// them: text is read through those.
func formsOf(value string) (all []string) {
	for piece := range piecesOf(value) {
		all = appendForms(all, piece)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// withPieces adds the pieces of a value as they are.
func withPieces(all []string, value string) []string {
	all = slices.AppendSeq(all, piecesOf(value))
	slices.Sort(all)
	return slices.Compact(all)
}

// piecesOf are the parts of a value that are looked for.
func piecesOf(value string) iter.Seq[string] {
	return func(yield func(string) bool) {
		from := 0
		for ; len(value)-from > pieceLength; from += pieceLength - pieceOverlap {
			if !yield(value[from : from+pieceLength]) {
				return
			}
		}
		yield(value[max(0, min(from, len(value)-pieceLength)):])
	}
}

func appendForms(all []string, piece string) []string {
	low := hex.EncodeToString([]byte(piece))
	all = append(all, piece, low, strings.ToUpper(low))
	for before := range 3 {
		for _, form := range inBase64(piece, before) {
			all = append(all, form, toURL.Replace(form))
		}
	}
	return all
}

// toURL writes base64 in the alphabet for addresses and names of files.
var toURL = strings.NewReplacer("+", "-", "/", "_")

// inBase64 is how a piece is written where so many bytes stand before it in its
// group of three: as far as no other byte has a part in it, and with what the end
// of the text adds if the piece ends there.
func inBase64(piece string, before int) []string {
	text := base64.StdEncoding.EncodeToString([]byte("\x00\x00"[:before] + piece))
	first := (before*8 + 5) / 6
	whole := (before + len(piece)) * 8 / 6
	forms := []string{text[first:whole]}
	if bare := strings.TrimRight(text, "="); len(bare) > whole {
		forms = append(forms, bare[first:], text[first:])
	}
	return forms
}
