package main

import "testing"

// What is measured must be work, whenever it is measured.
func TestPlansHaveWork(t *testing.T) {
	for _, size := range []planSize{smallPlan, largePlan} {
		if _, err := planning(size); err != nil {
			t.Errorf("%s: %v", size, err)
		}
	}
}
