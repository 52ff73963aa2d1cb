package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/compare"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestStandInIsLikeRecordedLonghorn holds the stand-in for Longhorn against what the real manager left at each step of
// the same scenario. `make test-longhorn` holds the record against the real manager.
func TestStandInIsLikeRecordedLonghorn(t *testing.T) {
	c := newControlPlane(t, options{auditWrites: true})
	c.seedLonghorn()
	lh := c.Longhorn().RestartIdle()
	c.runComponents(lh)
	c.runUntilStopped(lh.SyncSettings)
	// The real manager runs on one node, and has the others cordoned.
	for _, node := range c.State.Nodes {
		if node != compare.Node {
			c.kubectl("cordon", node)
		}
	}
	run, err := compare.Run(t.Context(), c.Sandbox, standIn{lh})
	c.must(err)
	if folder := os.Getenv("FAIRLEAD_LIKENESS"); folder != "" {
		c.must(compare.Write(folder, run)) // to look at
	}
	recorded, err := compare.Read("compare/testdata/" + compare.Version)
	c.must(err)
	if text := compare.Compare(recorded, run, compare.Raced()); text != "" {
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
