package yamltree

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// What the parser takes quadratic time for is bounded before it runs. Measured
// with goccy/go-yaml 1.19.2 on 256 KiB of each: a flow list of 131,072 items
// takes it 20 s, a mapping of 52,000 keys 5 s, a line of 131,072 colons 6 s, and
// 64 KiB of "[" 11 s. Within these bounds a file costs milliseconds a kilobyte at
// the worst. A list in block style is linear, and has no bound of its own.
const (
	maxFlowItems = 500  // of one list or mapping in brackets
	maxKeys      = 1000 // of one mapping in block style
	maxOnLine    = 4096 // tokens
	maxDocuments = 16
)

// block is a collection in block style that is open.
type block struct {
	column int
	keys   int // entries that are no list items
}

// tooMuch gives the token at which a file exceeds a bound, and says which; nil
// if it stays within them.
func tooMuch(tokens token.Tokens, maxDepth int) (*token.Token, string) {
	var flow []int // the number of commas in each collection in brackets that is open
	var blocks []block
	line, onLine, documents := 0, 0, 0
	for _, tk := range tokens {
		opens := tk.Type == token.SequenceEntryType || tk.Type == token.MappingKeyType
		first := tk.Position.Line != line
		if first {
			line, onLine = tk.Position.Line, 0
		}
		onLine++
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow = append(flow, 0)
		case token.MappingEndType, token.SequenceEndType:
			flow = flow[:max(len(flow)-1, 0)]
		case token.CollectEntryType:
			if len(flow) > 0 {
				if flow[len(flow)-1]++; flow[len(flow)-1] > maxFlowItems {
					return tk, fmt.Sprintf("more than %d items in brackets", maxFlowItems)
				}
			}
		case token.DocumentHeaderType, token.DocumentEndType:
			if documents++; documents > maxDocuments {
				return tk, "a file is one document"
			}
		}
		if opens && len(flow) > 0 { // not YAML, and the parser would go down with it
			flow = append(flow, 0)
		} else if opens || len(flow) == 0 && first {
			if blocks = open(blocks, tk.Position.Column, !opens); blocks[len(blocks)-1].keys > maxKeys {
				return tk, fmt.Sprintf("more than %d keys in one mapping", maxKeys)
			}
		}
		if len(flow)+len(blocks) > maxDepth {
			return tk, fmt.Sprintf("nested more than %d levels deep", maxDepth)
		}
		if onLine > maxOnLine {
			return tk, fmt.Sprintf("more than %d values and signs on one line", maxOnLine)
		}
	}
	return nil, ""
}

// open adds an entry at a column to the collections that are open, after closing
// those that end before it.
func open(blocks []block, column int, key bool) []block {
	for len(blocks) > 0 && blocks[len(blocks)-1].column > column {
		blocks = blocks[:len(blocks)-1]
	}
	if len(blocks) == 0 || blocks[len(blocks)-1].column < column {
		blocks = append(blocks, block{column: column})
	}
	if key {
		blocks[len(blocks)-1].keys++
	}
	return blocks
}
