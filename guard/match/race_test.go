//go:build race

package match_test

// The race detector makes a walk twenty times slower, and finds nothing in a test
// that has one goroutine: fewer and shorter texts do. What has several
// (TestCachesUnderLoad, TestManyLiterals) is tried as it is.
func init() {
	large /= 16
	evasionCases, literalCases, loadText = 400, 150, 300
	*cases, *least = 600, 512
}
