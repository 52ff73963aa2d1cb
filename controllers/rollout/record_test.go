package rollout

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// A controller that crashes after any write leaves no roll-out that is taken for done.
func TestChangingRecordIsNotApplied(t *testing.T) {
	f := newFixture(t, storage.Attachment{})
	f.Must(f.reconcile())
	if phase := f.rollout().Status.Phase; phase != "Applied" {
		t.Fatalf("phase %s", phase)
	}
	f.choose(netOne)
	f.Must(f.reconcile())
	s := f.rollout().Status
	if s.Clients.Network != netOne.String() || s.Desired != netOne.String() || s.Phase != "RollingClients" {
		t.Errorf("clients %q, desired %q, phase %s", s.Clients.Network, s.Desired, s.Phase)
	}
}
