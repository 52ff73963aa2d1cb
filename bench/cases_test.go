package main

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/bench/sample"
)

// What is compared must be equal work, whenever the comparison is run.
func TestBothSidesDoTheSameWork(t *testing.T) {
	for _, c := range []reviewCase{match, bigMatch, noNetwork, already} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := c.calls(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnequalWorkIsNotCompared(t *testing.T) {
	ours, _, err := match.calls()
	if err != nil {
		t.Fatal(err)
	}
	_, idle, err := noNetwork.calls()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkEqual(ours, idle, true); !errors.Is(err, errNotPatched) {
		t.Errorf("got %v, want errNotPatched", err)
	}
	larger, _, err := bigMatch.calls()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkEqual(ours, larger, true); !errors.Is(err, errUnequal) {
		t.Errorf("got %v, want errUnequal", err)
	}
}

// What is measured must be work, whenever it is measured.
func TestPlansHaveWork(t *testing.T) {
	for _, size := range []sample.Cluster{sample.Tenth, sample.Large} {
		if _, err := planning(size); err != nil {
			t.Errorf("%s: %v", size, err)
		}
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	// The machine was twice as slow in the second round, for both.
	ours, theirs := series{10, 20, 10}, series{100, 200, 150}
	want := ratio{median: 10, least: 10, most: 15}
	if got := theirs.over(ours); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := ours.median(); got != 10*time.Nanosecond {
		t.Errorf("got %v, want 10ns", got)
	}
}
