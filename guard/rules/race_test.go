//go:build race

package rules_test

// The race detector makes a walk many times slower, and finds nothing in a test
// that has one goroutine: fewer texts do, and of the fuzzer's seeds every sixteenth.
// The examples themselves are all tried by TestExamples and TestConformance.
func init() {
	*texts = 25
	seedStep = 16
}
