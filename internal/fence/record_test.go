package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

func TestForgets(t *testing.T) {
	volume := held("pv-1", rbd, "a")
	lingering := volume
	lingering.Until = at(noon.Add(time.Minute))
	record := func(boot string, volumes ...v1alpha1.HeldVolume) v1alpha1.NodeFenceStatus {
		return v1alpha1.NodeFenceStatus{Node: v1alpha1.MachineIdentity{BootID: boot}, Volumes: volumes}
	}
	for name, c := range map[string]struct {
		was, is v1alpha1.NodeFenceStatus
		want    bool
	}{
		"the first record":     {v1alpha1.NodeFenceStatus{}, record("b", volume), false},
		"the same":             {record("b", volume), record("b", volume), false},
		"one more volume":      {record("b"), record("b", volume), false},
		"it begins to linger":  {record("b", volume), record("b", lingering), false},
		"a volume is gone":     {record("b", volume), record("b"), true},
		"it does not linger":   {record("b", lingering), record("b", volume), true},
		"another boot":         {record("b", volume), record("c", volume), true},
		"a boot of before too": {record("b"), record("a"), true},
	} {
		if got := Forgets(c.was, c.is); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
