package fence

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The drill of a healthy node, and then the incident itself, must say the same.
func TestDrillPredictsIncident(t *testing.T) {
	tales(t, healthy, map[string]tale[string]{ // "" is fenceable
		"as it should be":         {func(*story) {}, ""},
		"nothing recorded":        {func(s *story) { s.Spec.Identities = nil }, ReasonNoIdentity},
		"a neighbour's address":   {func(s *story) { s.beside(liveAt("10.0.0.1")).look() }, ReasonAddressInUse},
		"the controller was down": {func(s *story) { s.Now = s.Now.Add(DefaultMaxAge + time.Hour) }, ReasonStaleLedger},
		"guard only":              {func(s *story) { s.mode(ModeGuard) }, ReasonGuardOnly},
		"no csi-addons":           {func(s *story) { s.NoCSIAddons = true }, ReasonNoCSIAddons},
	}, func(s *story, reason string) {
		before := *s.Spec.DeepCopy()
		drilled, refusal := Drill(s.Facts)
		s.wantThat(refusal == nil && len(drilled) == 1 && equality.Semantic.DeepEqual(before, s.Spec), "one fence is drilled, and the record is unchanged")
		d := drilled[0]
		must.Equal(s, VolumeNames(d.Volumes), []string{"pv-1"})
		s.Node.Ready, s.Node.ReadyChanged, s.Node.OutOfService = false, s.Now, true
		if s.look(); reason == "" {
			s.wantThat(d.Refusal == nil && d.Fence != nil && len(s.created) == 1, "both request a fence")
			must.True(s, d.Fence.Class == s.Fences[0].Class && slices.Equal(d.Fence.CIDRs, s.Fences[0].CIDRs), "they differ: %+v", d.Fence)
			return
		}
		s.wantThat(d.Fence == nil && d.Refusal != nil && d.Refusal.Reason == reason, "the drill refuses").wantPhase(v1alpha1.NodeFencing, reason).wantObjects()
		s.wantThat(s.NoCSIAddons || strings.HasPrefix(s.Status.Message, "not fenced: "+d.Refusal.Message), "the incident says what the drill says: "+d.Refusal.Message)
	})
}

// An incident would wait for csi-addons, which says nothing. The first reason counts.
func TestDrillRefusesWhileManagerIsSilent(t *testing.T) {
	s := healthy(t)
	must.True(t, Unfenceable(s.Facts) == nil, "a healthy node can't be fenced")
	s.SilentManager = "its lease is old"
	drilled, _ := Drill(s.Facts)
	must.Equal(t, *drilled[0].Refusal, Refusal{ReasonUnanswered, "its lease is old"})
	must.Equal(t, Unfenceable(s.Facts).Reason, ReasonUnanswered)
	s.Spec.Identities = nil
	must.Equal(t, Unfenceable(s.Facts).Reason, ReasonNoIdentity)
}

// Of a storage system without volumes on the node, the next volume may need the fence.
func TestDrillLooksAtEachStorageSystem(t *testing.T) {
	s := healthy(t)
	unused := identity(cephFS, "a", "10.0.0.1/32")
	unused.Class = ""
	s.Spec.Identities = append(s.Spec.Identities, unused)
	s.Spec.Volumes = append(s.Spec.Volumes, held("pv-2", other, "b"), held("pv-3", "unknown", ""))
	drilled, _ := Drill(s.Facts)
	got := map[string]string{}
	for _, d := range drilled {
		got[d.Driver] = "fenced"
		if d.Refusal != nil {
			got[d.Driver] = d.Refusal.Reason
		}
		must.True(t, d.Driver != cephFS || len(d.Volumes) == 0, "no volume of it is on the node: %v", d.Volumes)
	}
	want := map[string]string{rbd: "fenced", cephFS: ReasonNoCredentials, other: ReasonNoIdentity}
	must.Equal(t, got, want)
}

func TestOnlyHealthyNodesAreDrilled(t *testing.T) {
	tales(t, healthy, map[string]tale[string]{
		"not Ready":                    {func(s *story) { s.lose() }, ReasonNotReady},
		"tainted":                      {func(s *story) { s.taint(true) }, ReasonNotReady},
		"gone":                         {func(s *story) { s.dropNode() }, ReasonNotReady},
		"with a fence":                 {func(s *story) { s.loseTainted().comeBack().taint(false).look() }, ReasonNotReady},
		"rebooted, and not on record":  {func(s *story) { s.Node.Boot.BootID = "boot-2" }, ReasonNotReady},
		"another machine has its name": {func(s *story) { s.replace("machine-2", "192.168.1.2").look() }, ReasonNotReady},
	}, func(s *story, reason string) {
		drilled, refusal := Drill(s.Facts)
		must.True(s, refusal != nil && refusal.Reason == reason && drilled == nil, "got %+v", drilled)
	})
	s := healthy(t) // the controller has not seen it yet
	drilled, refusal := Drill(Facts{Node: s.Node, Spec: v1alpha1.NodeFenceSpec{Boot: s.Node.Boot}, Policy: s.Policy})
	must.True(t, refusal == nil && len(drilled) == 1 && drilled[0].Refusal != nil && drilled[0].Refusal.Reason == ReasonNoIdentity, "got %+v, %+v", drilled, refusal)
}
