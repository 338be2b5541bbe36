//go:build race

package match_test

// The race detector makes a walk twenty times slower, and finds nothing in a test
// that has one goroutine: fewer and shorter texts do. What has several
// (TestCachesUnderLoad, TestManyLiterals) is tried as it is.
func init() {
	large /= 16
	evasionCases, literalCases = 400, 150
	loadText, loadWaiting = 150, 2
	*cases, *least = 600, 512
}
