package config

import (
	"github.com/stoplog/stoplog/internal/yamltree"
)

// A file larger or deeper than this is no configuration.
const (
	maxFile  = 64 << 10
	maxDepth = 16
)

// The tree of a file, and who reads it.
type (
	reader = yamltree.Reader
	node   = yamltree.Node
	member = yamltree.Member
	kind   = yamltree.Kind
)

// The kinds of nodes.
const (
	broken  = yamltree.Broken // already reported: whoever reads it stays silent
	null    = yamltree.Null
	boolean = yamltree.Boolean
	number  = yamltree.Number
	text    = yamltree.String
	list    = yamltree.List
	mapping = yamltree.Mapping
)

// newReader reads a file, whose name stands in diagnostics, and shows no line of
// it that may hold a secret.
func newReader(file string) *reader {
	return &reader{
		File: file, What: "a configuration", Mask: maskSecrets,
		Limits: yamltree.Limits{Bytes: maxFile, Depth: maxDepth},
	}
}
