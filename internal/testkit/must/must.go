// Package must ends a test at an unexpected error, and compares values. It imports only package testing and what that
// imports, so that tests of small packages build quickly.
package must

import (
	"fmt"
	"reflect"
	"testing"
)

// TB is a test, a benchmark, or a property test.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Do ends the test on an error.
func Do(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// Equal fails the test if the value differs from the wanted value. An empty slice equals a
// nil slice. about is a format and its arguments, which name the value.
func Equal[T any](t TB, got, want T, about ...any) {
	t.Helper()
	if reflect.DeepEqual(got, want) || isEmptySlice(got) && isEmptySlice(want) {
		return
	}
	name := ""
	if len(about) > 0 {
		name = fmt.Sprintf(about[0].(string), about[1:]...) + ": "
	}
	t.Errorf("%sgot %v, want %v", name, got, want)
}

// True ends the test if a condition does not hold. The format and its arguments say what holds instead.
func True(t TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// Check fails the test if a condition does not hold, and lets the test go on.
func Check(t TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// HaveTime skips a test with -short, as it takes about a minute with the race detector. make test-unit gives -short with the
// race detector, and tests the packages that call HaveTime again without both.
func HaveTime(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes too long for -short")
	}
}

func isEmptySlice(value any) bool {
	v := reflect.ValueOf(value)
	return v.Kind() == reflect.Slice && v.Len() == 0
}
