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

func TestMergeOfLedgers(t *testing.T) {
	later := noon.Add(time.Minute)
	one, two := identity(rbd, "a", "10.0.0.1/32"), identity(rbd, "a", "10.0.0.2/32")
	problem := v1alpha1.StorageIdentity{Driver: rbd, ClusterID: "a", Problem: "no address"}
	for name, test := range map[string]struct {
		before, now []v1alpha1.StorageIdentity
		want        string
	}{
		"nothing":                     {nil, nil, ""},
		"the first":                   {nil, []v1alpha1.StorageIdentity{one}, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:01"},
		"the same, seen again":        {[]v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{one}, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:01"},
		"another address":             {[]v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{two}, rbd + "/a 10.0.0.2/32 CSIAddonsNode 12:01"},
		"reported no more":            {[]v1alpha1.StorageIdentity{one}, nil, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:00"},
		"by a less sure source":       {[]v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{from(SourceNode, two)}, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:00"},
		"by a surer source":           {[]v1alpha1.StorageIdentity{from(SourceNode, one)}, []v1alpha1.StorageIdentity{from(SourceMultus, two)}, rbd + "/a 10.0.0.2/32 Multus 12:01"},
		"a problem after an address":  {[]v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{problem}, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:00"},
		"an address after a problem":  {[]v1alpha1.StorageIdentity{problem}, []v1alpha1.StorageIdentity{from(SourceNode, one)}, rbd + "/a 10.0.0.1/32 Node 12:01"},
		"another storage beside it":   {[]v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{identity(rbd, "", "10.0.0.3/32")}, rbd + "/ 10.0.0.3/32 CSIAddonsNode 12:01; " + rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:00"},
		"one storage falls silent":    {[]v1alpha1.StorageIdentity{one, identity(other, "b", "10.0.0.3/32")}, []v1alpha1.StorageIdentity{two}, other + "/b 10.0.0.3/32 CSIAddonsNode 12:00; " + rbd + "/a 10.0.0.2/32 CSIAddonsNode 12:01"},
		"what is read is not changed": {nil, []v1alpha1.StorageIdentity{one}, rbd + "/a 10.0.0.1/32 CSIAddonsNode 12:01"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := textOfLedger(merge(test.before, test.now, later, DefaultMaxAge, func(key) bool { return false })); got != test.want {
				t.Fatalf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if got := textOfLedger([]v1alpha1.StorageIdentity{one}); got != rbd+"/a 10.0.0.1/32 CSIAddonsNode 12:00" {
		t.Fatalf("what is read has become %s", got)
	}
}

// The CSIAddonsNode is deleted soon after its node is lost, and may be just before.
func TestALedgerSurvivesItsSource(t *testing.T) {
	s := healthy(t)
	s.pass(time.Minute)
	s.Ledger = nil
	s.look()
	s.lose()
	s.Node.OutOfService = true
	s.look()
	s.wantObjects("Fenced [10.0.0.1/32] fence-" + rbd)
}

func TestALedgerIsOfOneBoot(t *testing.T) {
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
func TestTimesAloneAreWrittenSeldom(t *testing.T) {
	s := healthy(t)
	first := s.Status
	s.pass(RefreshEvery - time.Second)
	s.look()
	if s.Status.LastHealthy.Time != first.LastHealthy.Time {
		t.Fatal("written for the time alone")
	}
	s.pass(time.Second)
	s.look()
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

// A surer source may fall silent for the whole boot: the sidecar can't be reached, or the
// class was deleted. Before its word is too old to fence by, a less sure one takes its place.
func TestASilentSourceGivesWayToALessSureOne(t *testing.T) {
	one, two := identity(rbd, "a", "10.0.0.1/32"), identity(rbd, "a", "10.0.0.2/32")
	none := v1alpha1.StorageIdentity{Driver: rbd, ClusterID: "a", Problem: "no client pod is there"}
	list := func(i v1alpha1.StorageIdentity) []v1alpha1.StorageIdentity { return []v1alpha1.StorageIdentity{i} }
	for name, test := range map[string]struct {
		now   v1alpha1.StorageIdentity
		after time.Duration
		want  string
	}{
		"for a moment":                 {from(SourceNode, one), DefaultMaxAge / 2, "10.0.0.1/32 CSIAddonsNode 12:00"},
		"for longer":                   {from(SourceNode, one), 8 * time.Minute, "10.0.0.1/32 Node 12:08"},
		"and says something else":      {from(SourceNode, two), 8 * time.Minute, "10.0.0.2/32 Node 12:08 10.0.0.1/32 CSIAddonsNode 12:00 earlier"},
		"and nobody says anything":     {none, 8 * time.Minute, "10.0.0.1/32 CSIAddonsNode 12:00"},
		"and nobody does for too long": {none, 16 * time.Minute, "10.0.0.1/32 CSIAddonsNode 12:00 CSIAddonsNode, by which its addresses were known, has said nothing for longer than fencing.maxAge; no client pod is there"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, held := range []bool{true, false} {
				merged := merge(list(one), list(test.now), noon.Add(test.after), DefaultMaxAge, func(key) bool { return held })
				if got, want := textOfLedger(merged), rbd+"/a "+test.want; got != want {
					t.Fatalf("held %t: got\n%s\nwant\n%s", held, got, want)
				}
			}
		})
	}
	// It speaks again: then it is believed again.
	merged := merge(list(from(SourceNode, two)), list(one), noon.Add(time.Minute), DefaultMaxAge, func(key) bool { return false })
	if got, want := textOfLedger(merged), rbd+"/a 10.0.0.1/32 CSIAddonsNode 12:01"; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

// What was seen at the last routine look is not silent, however short maxAge is.
func TestASourceIsNotSilentBetweenRoutineLooks(t *testing.T) {
	one, two := identity(rbd, "a", "10.0.0.1/32"), from(SourceNode, identity(rbd, "a", "10.0.0.2/32"))
	const shortest = 2 * RefreshEvery
	for after, want := range map[time.Duration]string{
		RefreshEvery + 30*time.Second: "10.0.0.1/32 CSIAddonsNode 12:00",
		RefreshEvery + 2*time.Minute:  "10.0.0.2/32 Node 12:07 10.0.0.1/32 CSIAddonsNode 12:00 earlier",
	} {
		merged := merge([]v1alpha1.StorageIdentity{one}, []v1alpha1.StorageIdentity{two}, noon.Add(after), shortest, func(key) bool { return false })
		if got := textOfLedger(merged); got != rbd+"/a "+want {
			t.Errorf("after %s: got %s, want %s", after, got, want)
		}
	}
}

// A fence made with a class that is there no more is never answered.
func TestWhatToFenceWithIsAsItIsNow(t *testing.T) {
	before, now := identity(rbd, "a", "10.0.0.1/32"), from(SourceNode, identity(rbd, "a", "10.0.0.1/32"))
	now.Class, now.Secret = "", &v1alpha1.SecretReference{Name: "s", Namespace: "n"}
	merged := merge([]v1alpha1.StorageIdentity{before}, []v1alpha1.StorageIdentity{now}, noon.Add(time.Minute), DefaultMaxAge, func(key) bool { return true })
	if i := merged[0]; i.Class != "" || i.Secret == nil || i.Addresses[0].Source != SourceCSIAddonsNode {
		t.Fatalf("got %+v", i)
	}
	if before.Class == "" {
		t.Fatal("what is read is not changed")
	}
}
