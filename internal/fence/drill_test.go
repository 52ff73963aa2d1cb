package fence

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// The drill of a healthy node, and then the incident itself, must say the same.
func TestDrillPredictsIncident(t *testing.T) {
	neighbour := Other{Node: Node{Name: "node-2", Exists: true, Ready: true, Addresses: []netip.Addr{addr("10.0.0.1")}}}
	for name, test := range map[string]struct {
		change func(*story)
		reason string // "" is fenceable
	}{
		"as it should be":          {func(*story) {}, ""},
		"without a class":          {func(s *story) { s.Status.Identities[0].Class = "" }, ReasonNoCredentials},
		"nothing recorded":         {func(s *story) { s.Status.Identities = nil }, ReasonNoIdentity},
		"a problem on record":      {func(s *story) { s.Status.Identities[0].Problem = "no client pod" }, ReasonNoIdentity},
		"a neighbour's address":    {func(s *story) { s.Others = []Other{neighbour} }, ReasonAddressInUse},
		"the controller was down":  {func(s *story) { s.Now = s.Now.Add(DefaultMaxAge + time.Hour) }, ReasonStaleLedger},
		"recorded in another boot": {func(s *story) { s.Node.Machine.BootID = "boot-2" }, ReasonStaleLedger},
		"guard only":               {func(s *story) { s.Policy = with(s.Policy, StoragePolicy{Mode: ModeGuard}) }, ReasonGuardOnly},
		"no csi-addons":            {func(s *story) { s.NoCSIAddons = true }, ReasonNoCSIAddons},
		"left Unfenced": {func(s *story) {
			s.Fences = []NetworkFence{{Name: "by-hand", Unfenced: true, CIDRs: []string{"10.0.0.1/32"}}}
		}, ReasonLeftoverUnfenced},
		"outside the ranges": {func(s *story) {
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeFence, ClientRanges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
		}, ReasonOutsideRange},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			test.change(s)
			before := *s.Status.DeepCopy()
			drilled, refusal := Drill(s.Facts)
			if refusal != nil || len(drilled) != 1 {
				t.Fatalf("got %+v, %+v", drilled, refusal)
			}
			if !equality.Semantic.DeepEqual(before, s.Status) {
				t.Fatal("the drill has changed the record")
			}
			d := drilled[0]
			if got := VolumeNames(d.Volumes); !slices.Equal(got, []string{"pv-1"}) {
				t.Errorf("volumes that would wait: %q", got)
			}

			s.Node.Ready, s.Node.ReadyChanged, s.Node.OutOfService, s.Ledger = false, s.Now, true, nil
			if s.NoCSIAddons { // nothing can be created
				s.Status = Next(s.Facts).Status
				s.Status = Next(s.Facts).Status
				s.Status = Next(s.Facts).Status
			} else {
				s.look()
			}
			if test.reason != "" {
				if d.Fence != nil || d.Refusal == nil || d.Refusal.Reason != test.reason {
					t.Fatalf("the drill says %+v, %+v", d.Fence, d.Refusal)
				}
				s.want(v1alpha1.NodeFencing, d.Refusal.Reason, d.Refusal.Message)
				return
			}
			if d.Refusal != nil || d.Fence == nil {
				t.Fatalf("the drill says %+v", d.Refusal)
			}
			if len(s.created) != 1 || !slices.Equal(d.Fence.CIDRs, s.Fences[0].CIDRs) || d.Fence.Class != s.Fences[0].Class {
				t.Fatalf("the drill asks for %+v, the incident for %+v", d.Fence, s.Fences)
			}
		})
	}
}

// Of a storage system without volumes on the node, the next volume may need the fence.
func TestDrillLooksAtEachStorageSystem(t *testing.T) {
	s := healthy(t)
	unused := identity(cephFS, "a", "10.0.0.1/32")
	unused.Class = ""
	s.Status.Identities = append(s.Status.Identities, unused)
	s.Holding = append(s.Holding, held("pv-2", other, "b"), held("pv-3", "unknown", ""))
	s.Policy.Storages = func(driver string) (StoragePolicy, bool) {
		return StoragePolicy{Mode: ModeFence}, driver != "unknown"
	}
	drilled, _ := Drill(s.Facts)
	got := map[string]string{}
	for _, d := range drilled {
		got[d.Driver] = "fenced"
		if d.Refusal != nil {
			got[d.Driver] = d.Refusal.Reason
		}
		if d.Driver == cephFS && len(d.Volumes) > 0 {
			t.Errorf("no volume of it is on the node: %v", d.Volumes)
		}
	}
	want := map[string]string{rbd: "fenced", cephFS: ReasonNoCredentials, other: ReasonNoIdentity}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOnlyHealthyNodesAreDrilled(t *testing.T) {
	for name, change := range map[string]func(*story){
		"not Ready":  func(s *story) { s.lose() },
		"tainted":    func(s *story) { s.Node.OutOfService = true },
		"gone":       func(s *story) { s.Node = Node{Name: "node-1"} },
		"unfencing":  func(s *story) { s.Status.Phase = v1alpha1.NodeUnfencing },
		"still lost": func(s *story) { s.Status.Phase, s.Status.LostSince = v1alpha1.NodeLost, &metav1.Time{Time: noon} },
	} {
		s := healthy(t)
		change(s)
		if drilled, refusal := Drill(s.Facts); refusal == nil || drilled != nil {
			t.Errorf("%s: got %+v", name, drilled)
		}
	}
	s := healthy(t)
	s.Status = v1alpha1.NodeFenceStatus{} // the controller has not seen it yet
	for range 2 {
		if drilled, refusal := Drill(s.Facts); refusal != nil || len(drilled) != 1 || drilled[0].Refusal == nil || drilled[0].Refusal.Reason != ReasonNoIdentity {
			t.Errorf("without a record: got %+v, %+v", drilled, refusal)
		}
		s.Holding = nil // nor does it hold a volume
	}
}
