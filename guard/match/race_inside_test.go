//go:build race

package match

// As in race_test.go.
func init() { *sets, *limitSets = 60, 40 }
