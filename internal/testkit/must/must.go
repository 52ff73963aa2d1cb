// Package must ends a test at an error that the test does not expect. It imports nothing, so that tests of small packages
// stay quick to build.
package must

// TB is a test, a benchmark, or a property test.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test on an error.
func Do(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
