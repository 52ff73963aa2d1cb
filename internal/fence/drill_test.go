package fence

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The drill of a healthy node, and then the incident itself, must say the same.
func TestDrillPredictsIncident(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*story)
		reason string // "" is fenceable
	}{
		"as it should be":          {func(*story) {}, ""},
		"nothing recorded":         {func(s *story) { s.Status.Identities = nil }, ReasonNoIdentity},
		"a neighbour's address":    {func(s *story) { s.beside(liveAt("machine-7", "10.0.0.1")) }, ReasonAddressInUse},
		"the controller was down":  {func(s *story) { s.Now = s.Now.Add(DefaultMaxAge + time.Hour) }, ReasonStaleLedger},
		"recorded in another boot": {func(s *story) { s.Node.Machine.BootID = "boot-2" }, ReasonStaleLedger},
		"guard only":               {func(s *story) { s.mode(ModeGuard) }, ReasonGuardOnly},
		"no csi-addons":            {func(s *story) { s.NoCSIAddons = true }, ReasonNoCSIAddons},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t).do(test.change)
			before := *s.Status.DeepCopy()
			drilled, refusal := Drill(s.Facts)
			s.wantThat(refusal == nil && len(drilled) == 1 && equality.Semantic.DeepEqual(before, s.Status), "one fence is drilled, and the record is unchanged")
			d := drilled[0]
			must.Equal(t, VolumeNames(d.Volumes), []string{"pv-1"})
			s.Node.Ready, s.Node.ReadyChanged, s.Node.OutOfService, s.Ledger = false, s.Now, true, nil
			if s.NoCSIAddons { // nothing can be created
				for range 3 {
					s.Status = Next(s.Facts).Status
				}
			} else {
				s.look()
			}
			if test.reason != "" {
				s.wantThat(d.Fence == nil && d.Refusal != nil && d.Refusal.Reason == test.reason, "the drill refuses")
				s.want(v1alpha1.NodeFencing, d.Refusal.Reason, d.Refusal.Message)
				return
			}
			s.wantThat(d.Refusal == nil && d.Fence != nil && len(s.created) == 1, "both request a fence")
			must.Equal(t, d.Fence.CIDRs, s.Fences[0].CIDRs)
			must.Equal(t, d.Fence.Class, s.Fences[0].Class)
		})
	}
}

// An incident would wait for csi-addons, which says nothing.
func TestDrillRefusesWhileManagerIsSilent(t *testing.T) {
	s := healthy(t)
	s.SilentManager = "its lease is old"
	drilled, _ := Drill(s.Facts)
	s.wantThat(len(drilled) == 1 && drilled[0].Fence == nil && drilled[0].Refusal.Reason == ReasonUnanswered, "the drill refuses")
	must.Equal(t, drilled[0].Refusal.Message, "its lease is old")
	refused := Unfenceable(s.Facts)
	must.True(t, refused != nil && refused.Reason == ReasonUnanswered, "got %+v", refused)
	s.SilentManager = ""
	must.True(t, Unfenceable(s.Facts) == nil, "a healthy node can be fenced")
	s.NoCSIAddons = true
	must.Equal(t, Unfenceable(s.Facts).Reason, ReasonNoCSIAddons)
	// The first reason counts.
	s.SilentManager, s.Status.Identities = "its lease is old", nil
	drilled, _ = Drill(s.Facts)
	must.Equal(t, drilled[0].Refusal.Reason, ReasonNoIdentity)
}

// Of a storage system without volumes on the node, the next volume may need the fence.
func TestDrillLooksAtEachStorageSystem(t *testing.T) {
	s := healthy(t)
	unused := identity(cephFS, "a", "10.0.0.1/32")
	unused.Class = ""
	s.Status.Identities = append(s.Status.Identities, unused)
	s.Holding = append(s.Holding, held("pv-2", other, "b"), held("pv-3", "unknown", ""))
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
	for name, change := range map[string]func(*story){
		"not Ready":  func(s *story) { s.lose() },
		"tainted":    func(s *story) { s.taint(true) },
		"gone":       func(s *story) { s.dropNode() },
		"unfencing":  func(s *story) { s.Status.Phase = v1alpha1.NodeUnfencing },
		"still lost": func(s *story) { s.Status.Phase, s.Status.LostSince = v1alpha1.NodeLost, &metav1.Time{Time: noon} },
	} {
		drilled, refusal := Drill(healthy(t).do(change).Facts)
		must.True(t, refusal != nil && drilled == nil, "%s: got %+v", name, drilled)
	}
	s := healthy(t)
	s.Status = v1alpha1.NodeFenceStatus{} // the controller has not seen it yet
	for range 2 {
		if drilled, refusal := Drill(s.Facts); refusal != nil || len(drilled) != 1 || drilled[0].Refusal == nil || drilled[0].Refusal.Reason != ReasonNoIdentity {
			t.Errorf("without a record: got %+v, %+v", drilled, refusal)
		}
		s.hold() // nor does it hold a volume
	}
}
