package fence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func list(identities ...v1alpha1.StorageIdentity) []v1alpha1.StorageIdentity { return identities }

func from(source string, i v1alpha1.StorageIdentity) v1alpha1.StorageIdentity {
	i = *i.DeepCopy()
	for n := range i.Addresses {
		i.Addresses[n].Source = source
	}
	return i
}

// textOfLedger has identities, addresses with the minute when they were seen, sources other than CSIAddonsNode, and problems.
func textOfLedger(ledger []v1alpha1.StorageIdentity) string {
	var lines []string
	for _, i := range ledger {
		line := i.Driver + "/" + i.ClusterID
		for _, a := range i.Addresses {
			line += strings.TrimSuffix(" "+a.Source, " "+SourceCSIAddonsNode) + fmt.Sprintf(" %s %s", a.CIDR, a.LastSeen.UTC().Format("15:04"))
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
	one, two, b := identity(rbd, "a", "10.0.0.1/32"), identity(rbd, "a", "10.0.0.2/32"), identity(other, "b", "10.0.0.3/32")
	twoAfterOne, guess := list(earlier(two, "10.0.0.1/32")), list(from(SourceNode, one))
	problem := list(v1alpha1.StorageIdentity{Driver: rbd, ClusterID: "a", Problem: "no address"})
	for name, test := range map[string]struct {
		before, now []v1alpha1.StorageIdentity
		holds       bool // a volume of cluster a
		want        string
	}{
		"nothing":                      {nil, nil, false, ""},
		"the first":                    {nil, list(one), false, rbd + "/a 10.0.0.1/32 12:01"},
		"seen again":                   {list(one), list(one), false, rbd + "/a 10.0.0.1/32 12:01"},
		"another address":              {list(one), list(two), false, rbd + "/a 10.0.0.2/32 12:01"},
		"not reported":                 {list(one), nil, false, rbd + "/a 10.0.0.1/32 12:00"},
		"a guess, then an address":     {guess, list(two), false, rbd + "/a 10.0.0.2/32 12:01"},
		"a guess, then a problem":      {guess, problem, false, rbd + "/a no address"},
		"a guess, not reported":        {guess, nil, false, ""},
		"an address, then a problem":   {list(one), problem, false, rbd + "/a 10.0.0.1/32 12:00"},
		"a problem, then an address":   {problem, list(one), false, rbd + "/a 10.0.0.1/32 12:01"},
		"another cluster":              {list(one), list(identity(rbd, "", "10.0.0.3/32")), false, rbd + "/ 10.0.0.3/32 12:01; " + rbd + "/a 10.0.0.1/32 12:00"},
		"one of two clusters":          {list(one, b), list(two), false, other + "/b 10.0.0.3/32 12:00; " + rbd + "/a 10.0.0.2/32 12:01"},
		"in use, another address":      {list(one), list(two), true, rbd + "/a 10.0.0.2/32 12:01 10.0.0.1/32 12:00 earlier"},
		"in use, a third address":      {twoAfterOne, list(identity(rbd, "a", "10.0.0.3/32")), true, rbd + "/a 10.0.0.3/32 12:01 10.0.0.2/32 12:00 earlier 10.0.0.1/32 12:00 earlier"},
		"in use, the former address":   {twoAfterOne, list(one), true, rbd + "/a 10.0.0.1/32 12:01 10.0.0.2/32 12:00 earlier"},
		"in use, one of two addresses": {list(identity(rbd, "a", "10.0.0.1/32", "fd00::1/128")), list(one), true, rbd + "/a 10.0.0.1/32 12:01 fd00::1/128 12:00 earlier"},
		"in use, seen again":           {twoAfterOne, list(two), true, rbd + "/a 10.0.0.2/32 12:01 10.0.0.1/32 12:00 earlier"},
		"in use, not reported":         {twoAfterOne, nil, true, rbd + "/a 10.0.0.2/32 12:00 10.0.0.1/32 12:00 earlier"},
		"in use, then a problem":       {twoAfterOne, problem, true, rbd + "/a 10.0.0.2/32 12:00 10.0.0.1/32 12:00 earlier"},
		"another cluster is in use":    {list(b), list(identity(other, "b", "10.0.0.2/32")), true, other + "/b 10.0.0.2/32 12:01"},
		"not in use, a former address": {list(earlier(b, "10.0.0.1/32")), nil, true, other + "/b 10.0.0.3/32 12:00"},
	} {
		t.Run(name, func(t *testing.T) {
			merged := mergedAt(noon.Add(time.Minute), test.before, test.now, func(k key) bool { return test.holds && k == key{rbd, "a"} })
			must.Equal(t, textOfLedger(merged), test.want)
		})
	}
	must.Equal(t, textOfLedger(list(one)), rbd+"/a 10.0.0.1/32 12:00", "unchanged input")
}

// The CSIAddonsNode is deleted soon after its node is lost, and may be just before.
func TestLedgerSurvivesItsSource(t *testing.T) {
	healthy(t).pass(time.Minute).report().look().loseTainted().wantObjects("Fenced [10.0.0.1/32] fence-" + rbd)
}

func TestLedgerBelongsToOneBoot(t *testing.T) {
	s := healthy(t).boot("boot-2").report(identity(other, "b", "10.0.0.9/32")).look()
	must.Equal(t, textOfLedger(s.Status.Identities), other+"/b 10.0.0.9/32 12:01")
	must.Equal(t, s.Status.Node.BootID, "boot-2")
}

// Every record would be written all the time otherwise.
func TestTimesAloneAreRarelyWritten(t *testing.T) {
	s := healthy(t)
	first := s.Status.LastHealthy.Time
	s.pass(RefreshEvery - time.Second).look()
	must.Equal(t, s.Status.LastHealthy.Time, first)
	s.pass(time.Second).look()
	must.Equal(t, s.Status.LastHealthy.Time, s.Now)
	must.Equal(t, textOfLedger(s.Status.Identities), rbd+"/a 10.0.0.1/32 12:05")
	s.pass(time.Second).report(identity(rbd, "a", "10.0.0.2/32")).look() // written at once
	must.Equal(t, textOfLedger(s.Status.Identities), rbd+"/a 10.0.0.2/32 12:05 10.0.0.1/32 12:05 earlier")
	must.Equal(t, s.Status.Addresses, "10.0.0.1/32,10.0.0.2/32")
}

func TestSameLedger(t *testing.T) {
	changed := func(how func(*v1alpha1.StorageIdentity)) []v1alpha1.StorageIdentity {
		i := identity(rbd, "a", "10.0.0.1/32")
		i.Secret = &v1alpha1.SecretReference{Name: "s", Namespace: "n"}
		how(&i)
		return list(i)
	}
	same := changed(func(*v1alpha1.StorageIdentity) {})
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
		must.Equal(t, sameLedger(same, changed(test.how)), test.same, name)
	}
	must.Equal(t, sameLedger(same, nil), false)
	must.Equal(t, sameLedger(nil, nil), true)
}

// No other source replaces a silent sidecar or a deleted class.
func TestSilentSourceLeavesItsAddressesUntilTheyAreOld(t *testing.T) {
	none := v1alpha1.StorageIdentity{Driver: rbd, ClusterID: "a", Problem: "no sidecar"}
	for after, want := range map[time.Duration]string{
		DefaultMaxAge:               "",
		DefaultMaxAge + time.Minute: " CSIAddonsNode, by which its addresses were known, has said nothing for longer than fencing.maxAge; no sidecar",
	} {
		merged := mergedAt(noon.Add(after), list(identity(rbd, "a", "10.0.0.1/32")), list(none), func(key) bool { return true })
		must.Equal(t, textOfLedger(merged), rbd+"/a 10.0.0.1/32 12:00"+want)
	}
}

// An older version recorded the address of the Node where csi-addons was silent.
func TestGuessOfOlderVersionIsNotFenced(t *testing.T) {
	for _, requested := range []bool{false, true} {
		s := lost(t).taint(true)
		if requested {
			s.look().wantObjects("Fenced [10.0.0.1/32] fence-" + rbd)
		}
		s.Status.Identities[0] = from(SourceNode, s.Status.Identities[0])
		s.look().wantReason(ReasonNoIdentity).wantThat(len(s.Status.Fences) > 0 == requested, "only a requested fence is on record")
		s.csi() // the deleted fence may still be confirmed
		s.look().wantHeld(true).store(StoragePolicy{Mode: ModeFence, Source: SourceNode}).look().answer().wantHeld(false)
	}
}

// The driver's own fencing is switched on after the request. A confirmed fence stays: volumes may be in use elsewhere.
func TestFenceIsRefusedBesideDriverFencing(t *testing.T) {
	for _, confirmed := range []bool{false, true} {
		s := lost(t).store(StoragePolicy{Mode: ModeFence, Profile: "rook-ceph"}).taint(true).look()
		if confirmed {
			s.answer()
		}
		s.SelfFencing = map[string]string{"rook-ceph": "csi-1"}
		s.look().answer().wantHeld(!confirmed)
		s.wantThat(confirmed || s.Status.Reason == ReasonDriverFences, "the reason is the driver's fencing")
	}
}

func TestUnfenceableHealthyNodeIsReported(t *testing.T) {
	s := healthy(t).report(v1alpha1.StorageIdentity{Driver: other, ClusterID: "b", Problem: "no class"}).look()
	s.want(v1alpha1.NodeHealthy, ReasonNotFenceable, "the node could not be fenced if it were lost: "+other+" of b: no class").wantWarning()
	must.Equal(t, s.Status.AddressSources, SourceCSIAddonsNode)
}

// csi-addons never answers a fence with a deleted class.
func TestCredentialsAreCurrent(t *testing.T) {
	before := identity(rbd, "a", "10.0.0.1/32")
	now := v1alpha1.StorageIdentity{Driver: rbd, ClusterID: "a", Secret: &v1alpha1.SecretReference{Name: "s", Namespace: "n"}}
	merged := mergedAt(noon.Add(time.Minute), list(before), list(now), func(key) bool { return true })
	i := merged[0]
	must.True(t, i.Class == "" && i.Secret != nil && len(i.Addresses) == 1 && before.Class != "", "got %+v from %+v", i, before)
}
