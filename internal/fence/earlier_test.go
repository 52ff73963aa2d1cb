package fence

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func earlier(i v1alpha1.StorageIdentity, cidrs ...string) v1alpha1.StorageIdentity {
	for _, c := range cidrs {
		i.Addresses = append(i.Addresses, v1alpha1.ClientAddress{CIDR: c, Source: SourceCSIAddonsNode, LastSeen: metav1.NewTime(noon), Earlier: true})
	}
	return i
}

// A restarted client pod has another address, but old mounts still use the former address: both must be fenced.
func TestEarlierAddressOfSameBootIsFenced(t *testing.T) {
	pv, two := held("pv-1", rbd, "a"), identity(rbd, "a", "10.0.0.2/32")
	for name, test := range map[string]struct {
		happens func(*story)
		want    string
	}{
		"volume in use":    {func(*story) {}, "[10.0.0.1/32 10.0.0.2/32]"},
		"volumes released": {func(s *story) { s.hold().look().hold(pv).look() }, "[10.0.0.2/32]"},
		"rebooted":         {func(s *story) { s.boot("boot-2").look() }, "[10.0.0.1/32]"},
		"Node recreated":   {func(s *story) { s.Node.Machine.UID = "uid-2" }, "[10.0.0.1/32 10.0.0.2/32]"},
	} {
		t.Run(name, func(t *testing.T) {
			healthy(t).pass(time.Minute).report(two).look().do(test.happens).loseTainted().wantObjects("Fenced " + test.want + " fence-" + rbd)
		})
	}
	// The former address had no volumes.
	healthy(t).hold().look().report(two).look().hold(pv).look().loseTainted().wantObjects("Fenced [10.0.0.2/32] fence-" + rbd)
	// The volume was detached by force.
	s := healthy(t).lose().look().hold().returnSameBoot().report(two).look().pass(time.Minute).look()
	s.loseTainted().wantObjects("Fenced [10.0.0.1/32 10.0.0.2/32] fence-" + rbd)
}

func TestEarlierAddressDoesNotExpire(t *testing.T) {
	s := healthy(t).report(identity(rbd, "a", "10.0.0.2/32"))
	for range 20 {
		s.pass(RefreshEvery).look()
	}
	s.loseTainted().wantObjects("Fenced [10.0.0.1/32 10.0.0.2/32] fence-" + rbd)
}

// Another node may have the address now, although old mounts still use it.
func TestEarlierAddressOfLiveNodeIsRefused(t *testing.T) {
	for address, theirs := range map[string]v1alpha1.StorageIdentity{
		"10.0.0.1": identity(rbd, "a", "10.0.0.1/32"),
		"10.0.0.2": earlier(identity(rbd, "a", "10.0.0.3/32"), "10.0.0.2/32"),
	} {
		s := healthy(t).report(identity(rbd, "a", "10.0.0.2/32")).look()
		o := Other{Node: readyNamed("node-2", "boot-2"), Status: v1alpha1.NodeFenceStatus{Identities: []v1alpha1.StorageIdentity{theirs}}}
		o.Node.Addresses = []netip.Addr{addr("192.168.1.2")}
		s.beside(o).loseTainted().wantHeld(true)
		s.want(v1alpha1.NodeFencing, ReasonAddressInUse, "not fenced: "+rbd+" of a: "+address+" is also an address of node node-2, which is not lost")
	}
}

// The record is bounded. A problem shows that addresses are missing.
func TestTooManyEarlierAddressesAreAProblem(t *testing.T) {
	s := healthy(t)
	for i := range maxEarlier + 5 {
		s.report(identity(rbd, "a", fmt.Sprintf("10.0.1.%d/32", i))).look().look()
		got, want := s.Status.Identities[0].Problem != "", i+1 >= maxEarlier
		must.True(t, got == want, "after %d addresses the problem is %q", i+2, s.Status.Identities[0].Problem)
	}
	s.wantThat(len(s.Status.Identities[0].Addresses) == maxEarlier+1, "the first addresses are on record")
	volumes := s.Holding
	s.loseTainted().want(v1alpha1.NodeFencing, ReasonNoIdentity, "not fenced: "+rbd+" of a: "+tooMany)
	s.returnSameBoot().taint(false).hold().report(identity(rbd, "a", "10.0.2.1/32"))
	for range 2 {
		s.look().pass(endsWithin)
	}
	s.look().hold(volumes...).look()
	i := s.Status.Identities[0]
	must.True(t, i.Problem == "" && len(i.Addresses) == 1, "with nothing mounted, there is still %+v", i)
}
