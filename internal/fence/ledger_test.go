package fence

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

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

// csi-addons never answers a fence with a deleted class.
func TestCredentialsAreCurrent(t *testing.T) {
	before := identity(rbd, "a", "10.0.0.1/32")
	now := v1alpha1.StorageIdentity{Driver: rbd, ClusterID: "a", Secret: &v1alpha1.SecretReference{Name: "s", Namespace: "n"}}
	i := mergedAt(noon.Add(time.Minute), list(before), list(now), func(key) bool { return true })[0]
	must.True(t, i.Class == "" && i.Secret != nil && len(i.Addresses) == 1 && before.Class != "", "got %+v from %+v", i, before)
}

func TestSameLedger(t *testing.T) {
	changed := func(how func(*v1alpha1.StorageIdentity)) []v1alpha1.StorageIdentity {
		i := identity(rbd, "a", "10.0.0.1/32")
		i.Secret = &v1alpha1.SecretReference{Name: "s", Namespace: "n"}
		how(&i)
		return list(i)
	}
	same := changed(func(*v1alpha1.StorageIdentity) {})
	for what, how := range map[string]func(*v1alpha1.StorageIdentity){
		"the time":    func(i *v1alpha1.StorageIdentity) { i.Addresses[0].LastSeen = metav1.NewTime(noon.Add(time.Hour)) },
		"the address": func(i *v1alpha1.StorageIdentity) { i.Addresses[0].CIDR = "10.0.0.2/32" },
		"the source":  func(i *v1alpha1.StorageIdentity) { i.Addresses[0].Source = SourceNode },
		"earlier":     func(i *v1alpha1.StorageIdentity) { i.Addresses[0].Earlier = true },
		"addresses":   func(i *v1alpha1.StorageIdentity) { i.Addresses = nil },
		"the class":   func(i *v1alpha1.StorageIdentity) { i.Class = "x" },
		"the name":    func(i *v1alpha1.StorageIdentity) { i.Secret.Name = "x" },
		"the secret":  func(i *v1alpha1.StorageIdentity) { i.Secret = nil },
		"the client":  func(i *v1alpha1.StorageIdentity) { i.ClientID = "x" },
		"the driver":  func(i *v1alpha1.StorageIdentity) { i.Driver = "x" },
		"the storage": func(i *v1alpha1.StorageIdentity) { i.ClusterID = "x" },
		"the problem": func(i *v1alpha1.StorageIdentity) { i.Problem = "x" },
	} {
		t.Run(what+" differs", func(t *testing.T) { must.Equal(t, sameLedger(same, changed(how)), what == "the time") })
	}
	must.True(t, !sameLedger(same, nil) && sameLedger(nil, nil), "a ledger equals none")
}

// A source may be gone when the node is lost, or just before. Only the time until the loss ages an address: afterwards the
// machine could not report any.
func TestLedgerSurvivesItsSource(t *testing.T) {
	healthy(t).pass(time.Minute).report().look().loseTainted().wantObjects(fencedOf1)
	recordedLoss(t).pass(2 * DefaultMaxAge).taint(true).look().wantFencing()
}

func TestLedgerBelongsToOneBoot(t *testing.T) {
	s := healthy(t).comeBack().report(identity(other, "b", "10.0.0.9/32"))
	s.Node.Boot.BootID = "boot-2"
	must.Equal(t, textOfLedger(s.look().follow().Spec.Identities), other+"/b 10.0.0.9/32 12:01")
}

// Every record would be written all the time otherwise.
func TestTimesAloneAreRarelyWritten(t *testing.T) {
	s := healthy(t)
	first := s.Spec.LastSeen.Time
	must.Equal(t, s.pass(RefreshEvery-time.Second).look().Spec.LastSeen.Time, first)
	must.Equal(t, s.pass(time.Second).look().Spec.LastSeen.Time, s.Now)
	must.Equal(t, textOfLedger(s.Spec.Identities), rbd+"/a 10.0.0.1/32 12:05")
	s.pass(time.Second).report(identity(rbd, "a", "10.0.0.2/32")).look() // written at once
	must.Equal(t, textOfLedger(s.Spec.Identities), rbd+"/a 10.0.0.2/32 12:05 10.0.0.1/32 12:05 earlier")
	must.Equal(t, s.Status.Addresses+" from "+s.Status.AddressSources, "10.0.0.1/32,10.0.0.2/32 from CSIAddonsNode")
}

// A restarted client pod has another address, but old mounts still use the former address: both must be fenced.
func TestEarlierAddressOfSameBootIsFenced(t *testing.T) {
	pv, two := held("pv-1", rbd, "a"), identity(rbd, "a", "10.0.0.2/32")
	begins := func(t *testing.T) *story { return healthy(t).pass(time.Minute) }
	tales(t, begins, map[string]tale[string]{
		"volume in use":               {func(s *story) { s.report(two).look() }, "[10.0.0.1/32 10.0.0.2/32]"},
		"volume given back":           {func(s *story) { s.report(two).look().hold().look().hold(pv).look() }, "[10.0.0.2/32]"},
		"nothing was mounted over it": {func(s *story) { s.hold().look().report(two).look().hold(pv).look() }, "[10.0.0.2/32]"},
		"Node recreated":              {func(s *story) { s.register("boot-1").report(two).look() }, "[10.0.0.1/32 10.0.0.2/32]"},
		"detached by force, and back": {func(s *story) { s.lose().look().hold().comeBack().report(two).look() }, "[10.0.0.1/32 10.0.0.2/32]"},
		"it does not expire":          {func(s *story) { s.report(two).look().pass(DefaultMaxAge).look().pass(DefaultMaxAge).look() }, "[10.0.0.1/32 10.0.0.2/32]"},
		"rebooted":                    {func(s *story) { s.report(two).look().boot("boot-2").follow().hold(pv).look() }, "[10.0.0.1/32]"},
	}, func(s *story, want string) { s.loseTainted().wantObjects("Fenced " + want + " fence-" + rbd) })
}

// The record is bounded. A problem shows that addresses are missing.
func TestTooManyEarlierAddressesAreAProblem(t *testing.T) {
	s := healthy(t)
	for i := range maxEarlier + 5 {
		s.report(identity(rbd, "a", fmt.Sprintf("10.0.1.%d/32", i))).look()
		got, want := s.Spec.Identities[0].Problem != "", i+1 >= maxEarlier
		must.True(t, got == want, "after %d addresses the problem is %q", i+2, s.Spec.Identities[0].Problem)
	}
	s.wantThat(len(s.Spec.Identities[0].Addresses) == maxEarlier+1, "the addresses are bounded")
	s.loseTainted().want(v1alpha1.NodeFencing, ReasonNoIdentity, "not fenced: "+rbd+" of a: "+tooMany)
	s.comeBack().taint(false).hold().report(identity(rbd, "a", "10.0.2.1/32")).look().pass(endsWithin).look().hold(held("pv-1", rbd, "a")).look()
	i := s.Spec.Identities[0]
	must.True(t, i.Problem == "" && len(i.Addresses) == 1, "with nothing mounted, there is still %+v", i)
}

// A fence that would be refused because of its identity is reported while the node is healthy.
func TestHealthyNodeSaysWhyItCannotBeFenced(t *testing.T) {
	tales(t, healthy, map[string]tale[string]{ // "" is Ready
		"as it should be": {func(*story) {}, ""},
		"a secret instead of a class": {func(s *story) {
			s.Ledger[0].Class, s.Ledger[0].Secret = "", &v1alpha1.SecretReference{Name: "s", Namespace: "n"}
		}, ""},
		"no credentials": {func(s *story) { s.Ledger[0].Class = "" }, "there is neither a NetworkFenceClass nor a provisioner's secret to fence with: create a NetworkFenceClass for " + rbd},
		"a wide mask":    {func(s *story) { s.Ledger[0].Addresses[0].CIDR = "10.0.0.0/24"; s.hold().look() }, "10.0.0.0/24 is wider than one address"},
		"a problem": {func(s *story) {
			s.Spec.Identities, s.Ledger[0].Addresses, s.Ledger[0].Problem = nil, nil, "no client pod"
		}, "no client pod"},
		"another's address": {func(s *story) { s.beside(liveAt("10.0.0.1")) }, "10.0.0.1 is also an address of node node-7, which is not lost"},
		"guard only":        {func(s *story) { s.mode(ModeGuard).Ledger[0].Class = "" }, ""},
		"a silent manager":  {func(s *story) { s.SilentManager = "its lease is old" }, "its lease is old"},
		"outside the ranges": {func(s *story) {
			s.store(StoragePolicy{Mode: ModeFence, ClientRanges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
		}, "10.0.0.1 is outside this cluster's clientRanges: it may be another cluster's"},
	}, func(s *story, says string) {
		if s.look(); says == "" {
			s.is(saysHealthy)
			return
		}
		s.wantPhase(v1alpha1.NodeHealthy, ReasonNotFenceable).wantWarning().wantThat(strings.HasSuffix(s.Status.Message, says), says)
		drilled, _ := Drill(s.Facts)
		s.wantThat(drilled[0].Fence == nil, "the drill refuses to fence the node")
	})
}
