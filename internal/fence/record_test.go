package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
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
		must.Equal(t, Forgets(c.was, c.is), c.want, name)
	}
}

// What could not be read again from the cluster is kept.
func TestKeep(t *testing.T) {
	volume := held("pv-1", rbd, "a")
	detached, lingering, shared := volume, volume, volume
	detached.Detached, lingering.Until, shared.Shared, shared.Detached = true, at(noon), true, true
	node := func(phase v1alpha1.NodeFencePhase, reason string, volumes ...v1alpha1.HeldVolume) v1alpha1.NodeFenceStatus {
		return v1alpha1.NodeFenceStatus{Phase: phase, Reason: reason, Volumes: volumes, Identities: list(identity(rbd, "a", "10.0.0.1/32"))}
	}
	fencedOnce, moved := node(v1alpha1.NodeHealthy, ReasonReady), node(v1alpha1.NodeHealthy, ReasonReady, volume)
	fencedOnce.Fences = []v1alpha1.Fence{{Name: "f"}}
	moved.Identities[0] = earlier(moved.Identities[0], "10.0.0.2/32")
	for name, c := range map[string]struct {
		s    v1alpha1.NodeFenceStatus
		want bool
	}{
		"not written yet":                    {v1alpha1.NodeFenceStatus{}, false},
		"healthy":                            {node(v1alpha1.NodeHealthy, ReasonReady, volume), false},
		"lost":                               {node(v1alpha1.NodeLost, ReasonNotReady), true},
		"with a fence":                       {fencedOnce, true},
		"detached by force, and mounted":     {node(v1alpha1.NodeHealthy, ReasonReady, detached), true},
		"detached by force, given time":      {node(v1alpha1.NodeHealthy, ReasonReady, lingering), true},
		"detached by force, a shared volume": {node(v1alpha1.NodeHealthy, ReasonReady, shared), false},
		"Ready and tainted":                  {node(v1alpha1.NodeHealthy, ReasonTaintedButReady, volume), true},
		"mounted by the address of before":   {moved, true},
	} {
		must.Equal(t, Keep(c.s), c.want, name)
	}
}

func TestRecordedLoss(t *testing.T) {
	const loss = "boot-1@2026-01-01T12:01:00Z"
	for name, c := range map[string]struct {
		change func(*story)
		want   string
	}{
		"lost":                           {func(*story) {}, loss + " pv-1"},
		"being fenced":                   {func(s *story) { s.taint(true).look() }, loss + " pv-1"},
		"fenced":                         {func(s *story) { s.taint(true).look().answer() }, loss},
		"lost again":                     {func(s *story) { s.Node.ReadyChanged = s.Node.ReadyChanged.Add(time.Second) }, "boot-1@2026-01-01T12:01:01Z pv-1"},
		"not recorded yet":               {func(s *story) { s.Status.Phase = v1alpha1.NodeHealthy }, ""},
		"its kubelet says it is not up":  {func(s *story) { s.Node.Unknown = false }, ""},
		"back":                           {func(s *story) { s.Node.Ready, s.Node.Unknown = true, false; s.look() }, ""},
		"another boot than is on record": {func(s *story) { s.Node.Machine.BootID = "boot-2" }, ""},
		"its Node is gone":               {func(s *story) { s.dropNode() }, ""},
		"no boot ID":                     {func(s *story) { s.Node.Machine.BootID, s.Status.Node.BootID = "", "" }, ""},
		"given up":                       {func(s *story) { s.taint(true).look().override(GateUnfence).look() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := lost(t).do(func(s *story) { s.Node.Unknown = true }).look().do(c.change)
			must.Equal(t, RecordedLoss(s.Node, s.Status), c.want, "%+v", s.Status)
		})
	}
}
