package fence

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestForgets(t *testing.T) {
	volume := held("pv-1", rbd, "a")
	lingering := volume
	lingering.Until = at(noon.Add(time.Minute))
	of := func(volumes ...v1alpha1.HeldVolume) v1alpha1.NodeFenceSpec {
		return v1alpha1.NodeFenceSpec{Volumes: volumes}
	}
	for name, c := range map[string]struct {
		was, is v1alpha1.NodeFenceSpec
		want    bool
	}{
		"the first record":    {v1alpha1.NodeFenceSpec{}, of(volume), false},
		"the same":            {of(volume), of(volume), false},
		"one more volume":     {of(), of(volume), false},
		"it begins to linger": {of(volume), of(lingering), false},
		"a volume is gone":    {of(volume), of(), true},
		"it does not linger":  {of(lingering), of(volume), true},
		"the boot is over":    {of(), v1alpha1.NodeFenceSpec{Over: true}, true},
		"it was over before":  {v1alpha1.NodeFenceSpec{Over: true}, v1alpha1.NodeFenceSpec{Over: true}, false},
	} {
		t.Run(name, func(t *testing.T) { must.Equal(t, Forgets(c.was, c.is), c.want) })
	}
}

// What could not be read again from the cluster is kept. All that is kept is in an incident, but for addresses.
func TestKeep(t *testing.T) {
	tales(t, healthy, map[string]tale[bool]{
		"healthy":                          {func(*story) {}, false},
		"lost":                             {func(s *story) { s.lose().look() }, true},
		"lost without volumes":             {func(s *story) { s.hold().look().lose().look() }, false},
		"lost, and released by a person":   {func(s *story) { s.lose().look().act(GateAttach) }, false},
		"with a fence":                     {func(s *story) { s.loseTainted().act(GateUnfence) }, true},
		"over, with a fence":               {func(s *story) { s.loseTainted().answer().boot("boot-2") }, true},
		"back without a reboot":            {func(s *story) { s.lose().look().hold().comeBack().look() }, true},
		"detached while it is in use":      {func(s *story) { s.Node.Attached = nil; s.look() }, true},
		"Ready and tainted":                {func(s *story) { s.taint(true).look() }, true},
		"mounted by the address of before": {func(s *story) { s.report(identity(rbd, "a", "10.0.0.2/32")).look() }, true},
	}, func(s *story, want bool) {
		must.Equal(s, Keep(s.Spec), want)
		must.True(s, !want || InIncident(s.Spec) || s.Status.Reason == ReasonReady, "it is in no incident: %+v", s.Spec)
	})
	must.Equal(t, InIncident(v1alpha1.NodeFenceSpec{Over: true}) && !InIncident(healthy(t).Spec), true, "only what is lost, fenced, over or withheld is in an incident")
	must.Equal(t, Keep(v1alpha1.NodeFenceSpec{}), false, "not written yet")
}

func TestRecordedLoss(t *testing.T) {
	const loss = "boot-1@2026-01-01T12:01:00Z"
	silent := func(t *testing.T) *story {
		s := lost(t)
		s.Node.Unknown = true
		return s.look()
	}
	tales(t, silent, map[string]tale[string]{
		"lost":                           {func(*story) {}, loss + " pv-1"},
		"being fenced":                   {func(s *story) { s.taint(true).look() }, loss + " pv-1"},
		"fenced":                         {func(s *story) { s.taint(true).look().answer() }, loss},
		"lost again":                     {func(s *story) { s.Node.ReadyChanged = s.Node.ReadyChanged.Add(time.Second) }, "boot-1@2026-01-01T12:01:01Z pv-1"},
		"released by a person":           {func(s *story) { s.act(GateAttach) }, loss},
		"not recorded yet":               {func(s *story) { s.Spec.LostSince = nil }, ""},
		"its kubelet says it is not up":  {func(s *story) { s.Node.Unknown = false }, ""},
		"back":                           {func(s *story) { s.Node.Ready, s.Node.Unknown = true, false; s.look() }, ""},
		"another boot than is on record": {func(s *story) { s.Node.Boot.BootID = "boot-2" }, ""},
		"its Node is gone":               {func(s *story) { s.dropNode() }, ""},
	}, func(s *story, want string) { must.Equal(s, RecordedLoss(s.Node, s.Spec), want) })
}

// What people wait for.
func TestConditions(t *testing.T) {
	nothing := func(*story) {}
	tales(t, healthy, map[string]tale[string]{
		"healthy":      {nothing, "Fenced False, Held False"},
		"lost":         {func(s *story) { s.lose().look() }, "Fenced False, Held True"},
		"being fenced": {func(s *story) { s.loseTainted() }, "Fenced False, Held True"},
		"fenced":       {func(s *story) { s.loseTainted().answer() }, "Fenced True, Held False"},
	}, func(s *story, want string) {
		a, b := s.Status.Conditions[0], s.Status.Conditions[1]
		must.Equal(s, fmt.Sprintf("%s %s, %s %s", a.Type, a.Status, b.Type, b.Status), want)
	})
}
