package main

import (
	"testing"

	"github.com/fairlead-io/fairlead/bench/sample"
)

// What is measured must be work, whenever it is measured.
func TestPlansHaveWork(t *testing.T) {
	for _, size := range []sample.Cluster{sample.Tenth, sample.Large} {
		if _, err := planning(size); err != nil {
			t.Errorf("%s: %v", size, err)
		}
	}
}
