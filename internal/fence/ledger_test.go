package fence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

func from(source string, i v1alpha1.StorageIdentity) v1alpha1.StorageIdentity {
	i = *i.DeepCopy()
	for n := range i.Addresses {
		i.Addresses[n].Source = source
	}
	return i
}

// textOf a ledger: identity, addresses with source and the minute they were seen, problem.
func textOfLedger(ledger []v1alpha1.StorageIdentity) string {
	var lines []string
	for _, i := range ledger {
		line := i.Driver + "/" + i.ClusterID
		for _, a := range i.Addresses {
			line += fmt.Sprintf(" %s %s %s", a.CIDR, a.Source, a.LastSeen.UTC().Format("15:04"))
			if a.Earlier {
				line += " earlier"
			}
		}
		lines = append(lines, strings.TrimSpace(line+" "+i.Problem))
	}
	return strings.Join(lines, "; ")
}

// mergedAt is the ledger after a source has reported now.
func mergedAt(at time.Time, before, now []v1alpha1.StorageIdentity, holds func(key) bool) []v1alpha1.StorageIdentity {
	return Facts{Now: at, Policy: allFenced(), Ledger: now}.merge(before, holds)
}

func TestMergeOfLedgers(t *testing.T) {
	later := noon.Add(time.Minute)
	one, two := identity(rbd, "a", "10.0.0.1/32"), identity(rbd, "a", "10.0.0.2/32")
	problem := v1alpha1.StorageIdentity{Driver: rbd, ClusterID: "a", Problem: "no address"}
	for name, test := range map[string]struct {
		before, now []v1alpha1.StorageIdentity
		want        string
	}{
		"nothing":                      {nil, nil, ""},
		"the first":                    {nil, []v1alpha1.StorageIdentity{one}, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:01"},
		"the same, seen again":         {[]v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{one}, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:01"},
		"another address":              {[]v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{two}, rbd + "/a 10.0.0.2/32 CSIAddonsNode 12:01"},
		"reported no more":             {[]v1alpha1.StorageIdentity{one}, nil, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:00"},
		"a guess of before":            {[]v1alpha1.StorageIdentity{from(SourceNode, one)}, []v1alpha1.StorageIdentity{two}, rbd + "/a 10.0.0.2/32 CSIAddonsNode 12:01"},
		"a guess, and a silent source": {[]v1alpha1.StorageIdentity{from(SourceNode, one)}, []v1alpha1.StorageIdentity{problem}, rbd + "/a no address"},
		"a guess that is not reported": {[]v1alpha1.StorageIdentity{from(SourceNode, one)}, nil, ""},
		"a problem after an address":   {[]v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{problem}, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:00"},
		"an address after a problem":   {[]v1alpha1.StorageIdentity{problem}, []v1alpha1.StorageIdentity{one}, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:01"},
		"another storage beside it":    {[]v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{identity(rbd, "", "10.0.0.3/32")}, rbd + "/ 10.0.0.3/32 CSIAddonsNode 12:01; " + rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:00"},
		"one storage falls silent":     {[]v1alpha1.StorageIdentity{one, identity(other, "b", "10.0.0.3/32")}, []v1alpha1.StorageIdentity{two}, other + "/b 10.0.0.3/32 CSIAddonsNode 12:00; " + rbd + "/a 10.0.0.2/32 CSIAddonsNode 12:01"},
		"what is read is not changed":  {nil, []v1alpha1.StorageIdentity{one}, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:01"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := textOfLedger(mergedAt(later, test.before, test.now, func(key) bool { return false })); got != test.want {
				t.Fatalf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if got := textOfLedger([]v1alpha1.StorageIdentity{one}); got != rbd+"/a 10.0.0.1/32 CSIAddonsNode 12:00" {
		t.Fatalf("what is read has become %s", got)
	}
}

// The CSIAddonsNode is deleted soon after its node is lost, and may be just before.
func TestLedgerSurvivesItsSource(t *testing.T) {
	s := healthy(t)
	s.pass(time.Minute)
	s.Ledger = nil
	s.look()
	s.loseTainted()
	s.wantObjects("Fenced [10.0.0.1/32] fence-" + rbd)
}

func TestLedgerBelongsToOneBoot(t *testing.T) {
	s := healthy(t)
	s.boot("boot-2")
	s.Ledger = []v1alpha1.StorageIdentity{identity(other, "b", "10.0.0.9/32")}
	s.look()
	if got, want := textOfLedger(s.Status.Identities), other+"/b 10.0.0.9/32 CSIAddonsNode 12:01"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if s.Status.Node.BootID != "boot-2" {
		t.Fatalf("recorded of %+v", s.Status.Node)
	}
}

// Every node's record would else be written all the time.
func TestTimesAloneAreRarelyWritten(t *testing.T) {
	s := healthy(t)
	first := s.Status
	s.pass(RefreshEvery - time.Second).look()
	if s.Status.LastHealthy.Time != first.LastHealthy.Time {
		t.Fatal("written for the time alone")
	}
	s.pass(time.Second).look()
	if s.Status.LastHealthy.Time.Equal(first.LastHealthy.Time) || textOfLedger(s.Status.Identities) != rbd+"/a 10.0.0.1/32 CSIAddonsNode 12:05" {
		t.Fatalf("not seen since %s: %s", s.Status.LastHealthy, textOfLedger(s.Status.Identities))
	}
	s.pass(time.Second)
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.2/32")}
	s.look()
	if got := textOfLedger(s.Status.Identities); got != rbd+"/a 10.0.0.2/32 CSIAddonsNode 12:05 10.0.0.1/32 CSIAddonsNode 12:05 earlier" || s.Status.Addresses != "10.0.0.1/32,10.0.0.2/32" {
		t.Fatalf("another address is not written at once: %s", got)
	}
}

func TestSameLedger(t *testing.T) {
	of := func(how func(*v1alpha1.StorageIdentity)) []v1alpha1.StorageIdentity {
		i := identity(rbd, "a", "10.0.0.1/32")
		i.Secret = &v1alpha1.SecretReference{Name: "s", Namespace: "n"}
		how(&i)
		return []v1alpha1.StorageIdentity{i}
	}
	same := of(func(*v1alpha1.StorageIdentity) {})
	for name, test := range map[string]struct {
		how  func(*v1alpha1.StorageIdentity)
		same bool
	}{
		"the same":        {func(*v1alpha1.StorageIdentity) {}, true},
		"another time":    {func(i *v1alpha1.StorageIdentity) { i.Addresses[0].LastSeen = metav1.NewTime(noon.Add(time.Hour)) }, true},
		"another address": {func(i *v1alpha1.StorageIdentity) { i.Addresses[0].CIDR = "10.0.0.2/32" }, false},
		"another source":  {func(i *v1alpha1.StorageIdentity) { i.Addresses[0].Source = SourceNode }, false},
		"no address":      {func(i *v1alpha1.StorageIdentity) { i.Addresses = nil }, false},
		"another class":   {func(i *v1alpha1.StorageIdentity) { i.Class = "x" }, false},
		"another secret":  {func(i *v1alpha1.StorageIdentity) { i.Secret.Name = "x" }, false},
		"no secret":       {func(i *v1alpha1.StorageIdentity) { i.Secret = nil }, false},
		"another client":  {func(i *v1alpha1.StorageIdentity) { i.ClientID = "x" }, false},
		"another driver":  {func(i *v1alpha1.StorageIdentity) { i.Driver = "x" }, false},
		"another storage": {func(i *v1alpha1.StorageIdentity) { i.ClusterID = "x" }, false},
		"a problem":       {func(i *v1alpha1.StorageIdentity) { i.Problem = "x" }, false},
	} {
		if got := sameLedger(same, of(test.how)); got != test.same {
			t.Errorf("%s: %t", name, got)
		}
	}
	if sameLedger(same, nil) || !sameLedger(nil, nil) {
		t.Error("none is not one")
	}
}

// The sidecar can't be reached, or the class was deleted. No other source takes its place.
func TestSilentSourceLeavesItsAddressesUntilTheyAreOld(t *testing.T) {
	one := identity(rbd, "a", "10.0.0.1/32")
	none := v1alpha1.StorageIdentity{Driver: rbd, ClusterID: "a", Problem: "no sidecar"}
	for after, want := range map[time.Duration]string{
		DefaultMaxAge:               "10.0.0.1/32 CSIAddonsNode 12:00",
		DefaultMaxAge + time.Minute: "10.0.0.1/32 CSIAddonsNode 12:00 CSIAddonsNode, by which its addresses were known, has said nothing for longer than fencing.maxAge; no sidecar",
	} {
		merged := mergedAt(noon.Add(after), []v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{none}, func(key) bool { return true })
		if got := textOfLedger(merged); got != rbd+"/a "+want {
			t.Errorf("after %s: got %s, want %s", after, got, want)
		}
	}
}

// An older version recorded the Node's address where csi-addons was silent.
func TestGuessOfOlderVersionIsNotFenced(t *testing.T) {
	for name, asked := range map[string]bool{"before it was asked for": false, "asked for, not confirmed": true} {
		t.Run(name, func(t *testing.T) {
			s := lostStory(t)
			s.Node.OutOfService = true
			if asked {
				s.look()
				s.wantObjects("Fenced [10.0.0.1/32] fence-" + rbd)
			}
			s.Status.Identities[0] = from(SourceNode, s.Status.Identities[0])
			s.look()
			s.wantReason(ReasonNoIdentity)
			if recorded := len(s.Status.Fences) > 0; recorded != asked {
				t.Fatalf("a fence is recorded: %t", recorded)
			}
			s.csi() // what is there yet may still be confirmed
			s.look()
			s.wantHeld(true)
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeFence, Source: SourceNode})
			s.look()
			s.answer()
			s.wantHeld(false)
		})
	}
}

// The driver's own fencing is switched on while a fence is asked for. One that is confirmed stays:
// volumes may be in use elsewhere on account of it.
func TestFenceIsRefusedBesideDriverFencing(t *testing.T) {
	for name, confirmed := range map[string]bool{"asked for": false, "confirmed": true} {
		t.Run(name, func(t *testing.T) {
			s := lostStory(t)
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeFence, Profile: "rook-ceph"})
			s.taint(true).look()
			if confirmed {
				s.answer()
			}
			s.SelfFencing = map[string]string{"rook-ceph": "csi-1"}
			s.look()
			s.answer()
			s.wantHeld(!confirmed)
			if !confirmed {
				s.wantReason(ReasonDriverFences)
			}
		})
	}
}

func TestUnfenceableHealthyNodeIsReported(t *testing.T) {
	s := healthy(t)
	s.Ledger = []v1alpha1.StorageIdentity{{Driver: other, ClusterID: "b", Problem: "no class"}}
	s.look()
	s.want(v1alpha1.NodeHealthy, ReasonNotFenceable, "the node could not be fenced if it were lost: "+other+" of b: no class")
	if !s.step.Warning || s.Status.AddressSources != SourceCSIAddonsNode {
		t.Errorf("warning %t, sources %q", s.step.Warning, s.Status.AddressSources)
	}
	s.Policy = with(s.Policy, StoragePolicy{Mode: ModeGuard}) // an operator fences
	s.look()
	s.wantHealthy()
}

// A fence made with a class that is there no more is never answered.
func TestCredentialsAreCurrent(t *testing.T) {
	before := identity(rbd, "a", "10.0.0.1/32")
	now := v1alpha1.StorageIdentity{Driver: rbd, ClusterID: "a", Secret: &v1alpha1.SecretReference{Name: "s", Namespace: "n"}}
	merged := mergedAt(noon.Add(time.Minute), []v1alpha1.StorageIdentity{before}, []v1alpha1.StorageIdentity{now}, func(key) bool { return true })
	if i := merged[0]; i.Class != "" || i.Secret == nil || len(i.Addresses) != 1 {
		t.Fatalf("got %+v", i)
	}
	if before.Class == "" {
		t.Fatal("what is read is not changed")
	}
}
