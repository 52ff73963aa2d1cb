package e2e

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/compare"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestStandInIsLikeRecordedLonghorn compares the stand-in for Longhorn with the record of each real manager after each step
// of a scenario. `make test-longhorn` compares the records with the real managers. The differences of other versions than the
// default are on record, too: the stand-in has the manifests of the default. A version takes a cluster and a minute.
func TestStandInIsLikeRecordedLonghorn(t *testing.T) {
	folders, err := filepath.Glob("compare/testdata/v*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are no records: %v", err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) { compareStandIn(t, folder) })
	}
}

func compareStandIn(t *testing.T, folder string) {
	c := newControlPlane(t, options{longhorn: filepath.Base(folder), auditWrites: true})
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
	recorded, err := compare.Read(folder)
	c.must(err)
	text, accepted := distinct(compare.Compare(recorded, run)), filepath.Join(folder, "stand-in-differs.txt")
	if os.Getenv(compare.RecordVariable) != "" && text != "" {
		c.must(os.WriteFile(accepted, []byte(text), 0o644))
	}
	want, err := os.ReadFile(accepted)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("the stand-in differs from Longhorn in another way than %s says:\n%s", accepted, text)
	}
}

// distinct are the differences, each once: most of them stay from step to step.
func distinct(differences string) string {
	seen := map[string]bool{}
	for line := range strings.Lines(differences) {
		if _, difference, found := strings.Cut(line, ": "); found {
			line = difference
		}
		seen[strings.TrimSuffix(line, "\n")+"\n"] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), "")
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
