//go:build race

package match_test

// The race detector makes a walk twenty times slower; what it looks for shows
// in short texts too.
func init() { large /= 16 }
