package beside

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/compare"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// recordVariable has the objects recorded instead of compared.
const recordVariable = "FAIRLEAD_RECORD_LONGHORN"

// TestLonghornIsAsRecorded goes with the real manager through the scenario that the stand-in is held against. So a record
// that the real manager no longer agrees with is noticed.
func TestLonghornIsAsRecorded(t *testing.T) {
	s := without(t)
	run, err := compare.Run(s.ctx, s.Sandbox, real{s.Cluster})
	s.must(err)
	s.set("taint-toleration", "") // as the scenario has found it
	s.must(s.WaitApplied(s.ctx, "taint-toleration", true, settleTimeout))
	folder := filepath.Join("..", "compare", "testdata", compare.Version)
	if os.Getenv(recordVariable) != "" {
		if err := compare.Write(folder, run); err != nil {
			t.Fatal(err)
		}
		t.Log("recorded in " + folder)
		return
	}
	recorded, err := compare.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if text := compare.Compare(recorded, run, compare.Raced()); text != "" {
		t.Error(text)
	}
}

type real struct{ cluster *Cluster }

func (r real) CreateVolume(ctx context.Context, name string) error {
	return r.cluster.CreateVolume(ctx, name, "rwx")
}

func (r real) Attach(ctx context.Context, volume string) error {
	return errors.Join(r.cluster.Attach(ctx, volume, sandbox.TicketID(volume, compare.Node)), r.cluster.WaitServed(ctx, volume))
}

func (r real) Detach(ctx context.Context, volume string) error {
	return errors.Join(r.cluster.Detach(ctx, volume, sandbox.TicketID(volume, compare.Node)), r.cluster.WaitVolume(ctx, volume, "detached"))
}
