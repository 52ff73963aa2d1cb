package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/compare"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestStandInIsLikeRecordedLonghorn compares the stand-in for Longhorn with the record of the real manager after each step
// of a scenario. `make test-longhorn` compares the record with the real manager.
func TestStandInIsLikeRecordedLonghorn(t *testing.T) {
	c := newControlPlane(t, options{auditWrites: true})
	c.seedLonghorn()
	lh := c.Longhorn().RestartIdle()
	c.runComponents(lh)
	c.runUntilStopped(lh.SyncSettings)
	// The record is of a real manager on one node, with the other nodes cordoned.
	for _, node := range c.State.Nodes {
		if node != compare.Node {
			c.kubectl("cordon", node)
		}
	}
	run, err := compare.Run(t.Context(), c.Sandbox, standIn{lh})
	c.must(err)
	if folder := os.Getenv("FAIRLEAD_LIKENESS"); folder != "" {
		c.must(compare.Write(folder, run)) // for inspection
	}
	recorded, err := compare.Read("compare/testdata/" + compare.Version)
	c.must(err)
	if text := compare.Compare(recorded, run); text != "" {
		t.Error(text)
	}
}

type standIn struct{ longhorn standin.Longhorn }

func (s standIn) CreateVolume(ctx context.Context, name string) error {
	return s.longhorn.CreateVolume(ctx, standin.Volume{Name: name, Shared: true, ReplicaNodes: []string{compare.Node}})
}

func (s standIn) Attach(ctx context.Context, volume string) error {
	return s.longhorn.Attach(ctx, volume, compare.Node)
}

func (s standIn) Detach(ctx context.Context, volume string) error {
	return s.longhorn.Detach(ctx, volume)
}
