package yamltree

import "github.com/stoplog/stoplog/internal/diag"

// At is a value with the place where it was written. The zero At was not written.
type At[T any] struct {
	Value T
	Span  diag.Span
}

// Written says whether the value stands in the file.
func (a At[T]) Written() bool { return a.Span.Line > 0 }
