package catalog

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestKindsMatchSettings(t *testing.T) {
	every := []ComponentKind{Deployment, DaemonSetComponent, BackingImageManager, ShareManager, InstanceManager}
	for name, want := range map[Name][]ComponentKind{
		PriorityClass: every, StorageNetwork: {BackingImageManager, InstanceManager}, GuaranteedCPU: {InstanceManager}, V2DataEngine: {InstanceManager},
		CSIResources: {Deployment, DaemonSetComponent}, ReplicaRebuildLimit: nil,
	} {
		d, _ := Lookup(string(name))
		must.Equal(t, d.Kinds(), want, string(name))
	}
	for _, d := range All() {
		must.Check(t, d.Wants == nil || len(d.Kinds()) > 0, "no sample is of a kind that %s is about", d.Name)
	}
}
