package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

const cephDriver = "rook-ceph.rbd.csi.ceph.com"

var taintingNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ago is a time before taintingNow.
func ago(d time.Duration) time.Time { return taintingNow.Add(-d) }

// cephIsFenced is a policy by which Ceph's volumes are protected, and no others.
func cephIsFenced(mode fence.Mode) fence.Policy {
	return fence.Policy{MaxAge: fence.DefaultMaxAge, Storages: func(driver string) (fence.StoragePolicy, bool) {
		return fence.StoragePolicy{Mode: mode}, strings.HasSuffix(driver, "ceph.com")
	}}
}

// readyNode has been Ready for a day.
func readyNode(name string) Candidate {
	n := Candidate{
		Node:      fence.Node{Name: name, Exists: true, Machine: v1alpha1.MachineIdentity{BootID: "boot-" + name}, Ready: true, ReadyChanged: ago(24 * time.Hour)},
		Labels:    map[string]string{zoneLabel: "a"},
		Created:   ago(48 * time.Hour),
		Heartbeat: ago(5 * time.Second),
	}
	n.Status.Phase, n.Status.Node = v1alpha1.NodeHealthy, n.Node.Machine
	return n
}

// lose makes it a node that was silent for so long, and that can be fenced.
func (n *Candidate) lose(d time.Duration) {
	n.Node.Ready, n.Node.Unknown, n.Node.ReadyChanged = false, true, ago(d)
	n.Heartbeat = ago(d + 50*time.Second)
	since := metav1.NewTime(ago(d))
	n.Status.Phase, n.Status.LostSince, n.Status.Incident = v1alpha1.NodeLost, &since, "incident-"+n.Node.Name
	n.Status.Volumes = []v1alpha1.HeldVolume{{PersistentVolume: "pv-" + n.Node.Name, Driver: cephDriver, ClusterID: "c"}}
	n.Drivers = []string{cephDriver}
	n.Status.Identities = []v1alpha1.StorageIdentity{{
		Driver: cephDriver, ClusterID: "c", Class: "class",
		Addresses: []v1alpha1.ClientAddress{{CIDR: "10.0.0." + strings.TrimPrefix(n.Node.Name, "node-") + "/32", Source: fence.SourceCSIAddonsNode, LastSeen: metav1.NewTime(ago(d + time.Minute))}},
	}}
}

// lostWorld has ten nodes, of which node-1 is lost since ten minutes.
func lostWorld() (Rules, Facts) {
	f := Facts{Now: taintingNow, Read: ago(time.Second), Policy: cephIsFenced(fence.ModeFence)}
	for i := range 10 {
		f.Nodes = append(f.Nodes, readyNode(fmt.Sprintf("node-%d", i)))
	}
	f.Nodes[1].lose(10 * time.Minute)
	return Rules{Mode: On}, f
}

func TestTaint(t *testing.T) {
	type world = func(*Rules, *Facts)
	one := func(change func(*Candidate)) world {
		return func(_ *Rules, f *Facts) { change(&f.Nodes[1]) }
	}
	facts := func(change func(*Facts)) world { return func(_ *Rules, f *Facts) { change(f) } }
	for name, c := range map[string]struct {
		change world
		// want are the verdicts in order: node, action and reason.
		want string
		// says is a part of the first message.
		says string
	}{
		"a lost node that can be fenced":                      {change: facts(func(*Facts) {}), want: "node-1 taint Lost", says: "pv-node-1"},
		"in a dry run it is only said":                        {change: func(t *Rules, _ *Facts) { t.Mode = DryRun }, want: "node-1 wouldTaint Lost"},
		"off is off":                                          {change: func(t *Rules, _ *Facts) { t.Mode = Off }, want: "node-1 none TaintingOff"},
		"what says nothing is off":                            {change: func(t *Rules, _ *Facts) { t.Mode = "" }, want: "node-1 none TaintingOff"},
		"an unknown mode is off":                              {change: func(t *Rules, _ *Facts) { t.Mode = "ON" }, want: "node-1 none TaintingOff"},
		"a pause":                                             {change: facts(func(f *Facts) { f.Paused = true }), want: "node-1 none Paused", says: "AUTOMATIC_TAINTING"},
		"a node that is gone is fenced without a taint":       {change: one(func(n *Candidate) { n.Node.Exists = false }), want: ""},
		"a node of the control plane":                         {change: one(func(n *Candidate) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }), want: "node-1 none ControlPlane"},
		"a node of the control plane as it was called before": {change: one(func(n *Candidate) { n.Labels["node-role.kubernetes.io/master"] = "true" }), want: "node-1 none ControlPlane"},
		"a node of etcd":                                      {change: one(func(n *Candidate) { n.Labels["node-role.kubernetes.io/etcd"] = "true" }), want: "node-1 none ControlPlane"},
		"a node that is not selected": {want: "node-1 none NotSelected", says: "pool=storage", change: func(t *Rules, _ *Facts) {
			t.NodeSelector = labels.SelectorFromSet(labels.Set{"pool": "storage"})
		}},
		"a node that is selected": {want: "node-1 taint Lost", change: func(t *Rules, f *Facts) {
			t.NodeSelector = labels.SelectorFromSet(labels.Set{"pool": "storage"})
			f.Nodes[1].Labels["pool"] = "storage"
		}},
		"a node that is kept out by annotation":                                 {change: one(func(n *Candidate) { n.OptedOut = true }), want: "node-1 none OptedOut", says: NoTaintAnnotation},
		"a node that is tainted by an operator":                                 {change: one(func(n *Candidate) { n.Node.OutOfService = true }), want: "node-1 none AlreadyTainted"},
		"a node whose taint was taken away, as is on record":                    {change: one(func(n *Candidate) { at := metav1.NewTime(ago(time.Minute)); n.Status.Tainted = &at }), want: "node-1 none TaintTaken"},
		"a node whose taint was taken away, as Fairlead remembers":              {change: one(func(n *Candidate) { n.Given = true }), want: "node-1 none TaintTaken"},
		"a node that was tainted before it was lost this time":                  {change: one(func(n *Candidate) { at := metav1.NewTime(ago(time.Hour)); n.Status.Tainted = &at }), want: "node-1 taint Lost"},
		"a cordoned node is an operator's business":                             {change: one(func(n *Candidate) { n.Cordoned = true }), want: "node-1 none Cordoned"},
		"a node that is being deleted":                                          {change: one(func(n *Candidate) { n.Deleting = true }), want: "node-1 none Leaving"},
		"a kubelet that says that it is not Ready is alive":                     {change: one(func(n *Candidate) { n.Node.Unknown = false; n.Heartbeat = ago(5 * time.Second) }), want: "node-1 none KubeletAlive"},
		"a kubelet that said so and fell silent is left to the node controller": {change: one(func(n *Candidate) { n.Node.Unknown = false }), want: "node-1 none KubeletAlive"},
		"a node that has just renewed its lease":                                {change: one(func(n *Candidate) { n.Heartbeat = ago(20 * time.Second) }), want: "node-1 none KubeletAlive"},
		"a node that was heard of after it was given up":                        {change: one(func(n *Candidate) { n.Heartbeat = ago(3 * time.Minute) }), want: "node-1 none NotYet"},
		"a node whose clock is an hour ahead":                                   {change: one(func(n *Candidate) { n.Heartbeat = ago(-time.Hour) }), want: "node-1 taint Lost"},
		"a node without a lease":                                                {change: one(func(n *Candidate) { n.Heartbeat = time.Time{} }), want: "node-1 taint Lost"},
		"a node that is lost for less than five minutes":                        {change: one(func(n *Candidate) { n.lose(5*time.Minute - time.Second) }), want: "node-1 none NotYet", says: "5m0s"},
		"a node that is lost for five minutes":                                  {change: one(func(n *Candidate) { n.lose(5 * time.Minute) }), want: "node-1 taint Lost"},
		"a time of one's own":                                                   {change: func(t *Rules, _ *Facts) { t.NotReadyFor = 11 * time.Minute }, want: "node-1 none NotYet"},
		"a node that is lost since an unknown time":                             {change: one(func(n *Candidate) { n.Node.ReadyChanged, n.Heartbeat = time.Time{}, time.Time{} }), want: "node-1 none SinceUnknown"},
		"a loss that the record does not know of":                               {change: one(func(n *Candidate) { n.Status.Phase = v1alpha1.NodeHealthy }), want: "node-1 none NotRecorded"},
		"a node without a record":                                               {change: one(func(n *Candidate) { n.Status = v1alpha1.NodeFenceStatus{} }), want: "node-1 none NotRecorded"},
		"a node that is fenced already":                                         {change: one(func(n *Candidate) { n.Status.Phase = v1alpha1.NodeFenced }), want: "node-1 none UnderWay", says: "Fenced"},
		"a node that is back and was not unfenced yet":                          {change: one(func(n *Candidate) { n.Status.Phase = v1alpha1.NodeReturned }), want: "node-1 none UnderWay"},
		"a node that holds nothing":                                             {change: one(func(n *Candidate) { n.Status.Volumes = nil }), want: "node-1 none NothingHeld"},
		"a node whose volumes are switched off":                                 {change: facts(func(f *Facts) { f.Policy = cephIsFenced(fence.ModeOff) }), want: "node-1 none SwitchedOff"},
		"a node with volumes that Fairlead does not fence":                      {change: one(func(n *Candidate) { n.Drivers = append(n.Drivers, "ebs.csi.aws.com", "ebs.csi.aws.com") }), want: "node-1 none Unprotected", says: "volumes of ebs.csi.aws.com are"},
		"a node with volumes that need no fence": {want: "node-1 taint Lost", change: func(t *Rules, f *Facts) {
			t.ForceDetach = []string{"ebs.csi.aws.com"}
			f.Nodes[1].Drivers = append(f.Nodes[1].Drivers, "ebs.csi.aws.com")
		}},
		"a storage that is guarded only": {change: facts(func(f *Facts) { f.Policy = cephIsFenced(fence.ModeGuard) }), want: "node-1 none GuardOnly", says: "would lose its pods"},
		"a node without a ledger":        {change: one(func(n *Candidate) { n.Status.Identities = nil }), want: "node-1 none NoIdentity"},
		"a ledger that was too old when the node was lost": {want: "node-1 none StaleLedger", change: one(func(n *Candidate) {
			n.Status.Identities[0].Addresses[0].LastSeen = metav1.NewTime(ago(10*time.Minute + fence.DefaultMaxAge + time.Second))
		})},
		"a ledger of another boot":      {change: one(func(n *Candidate) { n.Node.Machine.BootID = "another" }), want: "node-1 none StaleLedger"},
		"a storage without credentials": {change: one(func(n *Candidate) { n.Status.Identities[0].Class = "" }), want: "node-1 none NoCredentials"},
		"an address that a live node has": {want: "node-1 none AddressInUse", says: "node-2", change: facts(func(f *Facts) {
			f.Nodes[2].Status.Identities = []v1alpha1.StorageIdentity{{Addresses: []v1alpha1.ClientAddress{{CIDR: "10.0.0.1/32"}}}}
		})},
		"a fence that would be refused by a closer look": {change: one(func(n *Candidate) { n.Refused = fence.Refuse(fence.ReasonContradicted, "seen elsewhere") }), want: "node-1 none Contradicted", says: "seen elsewhere"},
		"a reading that is old":                          {change: facts(func(f *Facts) { f.Read = ago(61 * time.Second) }), want: "node-1 none StaleView", says: "1m1s ago"},
		"a reading that never was":                       {change: facts(func(f *Facts) { f.Read = time.Time{} }), want: "node-1 none StaleView"},
		"no node is heard of": {want: "node-1 none StaleView", says: "no node at all", change: facts(func(f *Facts) {
			for i := range f.Nodes {
				f.Nodes[i].Heartbeat = f.Nodes[i].Heartbeat.Add(-5 * time.Minute)
			}
		})},
		"a single other node is heard of": {want: "node-1 taint Lost", change: facts(func(f *Facts) {
			for i := range f.Nodes[1:] {
				f.Nodes[i].Heartbeat = f.Nodes[i].Heartbeat.Add(-5 * time.Minute)
			}
			f.Nodes[9].Heartbeat = ago(time.Minute)
		})},
		"our clock is ten minutes ahead": {change: facts(func(f *Facts) { f.Now, f.Read = f.Now.Add(10*time.Minute), f.Read.Add(10*time.Minute) }), want: "node-1 none StaleView"},
		"our clock is ten minutes behind": {want: "node-1 none StaleView", change: func(t *Rules, f *Facts) {
			t.NotReadyFor = time.Second
			f.Nodes[1].lose(30 * time.Minute)
			f.Now, f.Read = f.Now.Add(-10*time.Minute), f.Read.Add(-10*time.Minute)
		}},
		"three of ten are a storm":                   {change: facts(func(f *Facts) { f.Nodes[2].lose(9 * time.Minute); f.Nodes[3].lose(6 * time.Minute) }), want: "node-1 none Storm; node-2 none Storm; node-3 none Storm", says: "more than 2 nodes"},
		"a storm does not end by itself":             {want: "node-1 none Storm; node-2 none Storm; node-3 none Storm", change: facts(func(f *Facts) { f.lose(50*time.Hour, 1, 2, 3) })},
		"a storm of long ago keeps what is lost now": {want: "node-2 none Storm; node-3 none Storm; node-4 none Storm; node-1 none Storm", change: facts(func(f *Facts) { f.lose(time.Hour, 2, 3, 4) })},
		"three of ten, one after the other": {want: "node-3 taint Lost; node-1 taint Lost; node-2 taint Lost", change: func(t *Rules, f *Facts) {
			t.MaxShare, t.MaxNodes = 100, 9
			f.Nodes[2].lose(7 * time.Minute)
			f.Nodes[3].lose(16 * time.Minute)
		}},
		"three at once, of which two are back since a moment ago": {want: "node-1 none Storm", change: facts(func(f *Facts) {
			f.Nodes[1].lose(6 * time.Minute)
			f.Nodes[2].Node.ReadyChanged, f.Nodes[3].Node.ReadyChanged = ago(2*time.Minute), ago(2*time.Minute)
		})},
		"three at once, of which two are back for long": {want: "node-1 taint Lost", change: facts(func(f *Facts) {
			f.Nodes[2].Node.ReadyChanged, f.Nodes[3].Node.ReadyChanged = ago(6*time.Minute), ago(6*time.Minute)
		})},
		"many new nodes are no storm": {want: "node-1 taint Lost", change: facts(func(f *Facts) {
			f.Nodes[1].lose(6 * time.Minute)
			for i := range f.Nodes[2:] {
				f.Nodes[2+i].Created, f.Nodes[2+i].Node.ReadyChanged = ago(3*time.Minute), ago(2*time.Minute)
			}
		})},
		"a storm is over for those that an operator has dealt with": {want: "node-1 taint Lost; node-2 none TooManyTainted; node-3 none AlreadyTainted", change: func(t *Rules, f *Facts) {
			t.MaxShare = 100
			f.lose(9*time.Minute, 2, 3)
			f.Nodes[3].Node.OutOfService = true
		}},
		"a storm is not over for one that Fairlead has tainted": {want: "node-1 none Storm; node-2 none Storm; node-3 none AlreadyTainted", change: func(t *Rules, f *Facts) {
			t.MaxNodes = 2
			f.lose(9*time.Minute, 2, 3)
			f.Nodes[3].Node.OutOfService, f.Nodes[3].Node.OwnTaint = true, true
		}},
		"of fifty nodes ten may be lost at once": {want: "node-1 taint Lost; node-10 none TooManyTainted; node-2 none TooManyTainted; node-3 none TooManyTainted; node-4 none TooManyTainted; node-5 none TooManyTainted; node-6 none TooManyTainted; node-7 none TooManyTainted; node-8 none TooManyTainted; node-9 none TooManyTainted", change: func(t *Rules, f *Facts) {
			for i := range 40 {
				f.Nodes = append(f.Nodes, readyNode(fmt.Sprintf("node-%d", 10+i)))
			}
			for i := range 9 {
				f.Nodes[2+i].lose(6 * time.Minute)
			}
		}},
		"one of three in a zone may go":      {change: facts(func(f *Facts) { f.zones("z", 1, 2, 3) }), want: "node-1 taint Lost"},
		"one of two in a zone may not":       {change: facts(func(f *Facts) { f.zones("z", 1, 2) }), want: "node-1 none ZoneShare", says: "1 of 2 nodes"},
		"a tainted node counts for its zone": {change: facts(func(f *Facts) { f.zones("z", 1, 2, 3); f.Nodes[2].Node.OutOfService = true }), want: "node-1 none ZoneShare", says: "2 of 3 nodes"},
		"a node of any kind counts for its zone": {want: "node-2 none ControlPlane; node-1 none ZoneShare", says: "node-2", change: facts(func(f *Facts) {
			f.zones("z", 1, 2, 3)
			f.Nodes[2].lose(time.Hour)
			f.Nodes[2].Labels["node-role.kubernetes.io/control-plane"] = ""
		})},
		"nodes without a zone are one zone": {change: facts(func(f *Facts) { f.zones("", 1, 2) }), want: "node-1 none ZoneShare", says: `zone ""`},
		"one at a time":                     {change: facts(func(f *Facts) { f.Nodes[2].lose(30 * time.Minute) }), want: "node-2 taint Lost; node-1 none TooManyTainted", says: "pv-node-2"},
		"one at a time in a dry run too":    {change: func(t *Rules, f *Facts) { t.Mode = DryRun; f.Nodes[2].lose(30 * time.Minute) }, want: "node-2 wouldTaint Lost; node-1 none TooManyTainted"},
		"two, if one says so":               {change: func(t *Rules, f *Facts) { t.MaxNodes = 2; f.Nodes[2].lose(30 * time.Minute) }, want: "node-2 taint Lost; node-1 taint Lost"},
		"an own taint of before":            {change: facts(func(f *Facts) { f.Nodes[2].Node.OutOfService, f.Nodes[2].Node.OwnTaint = true, true }), want: "node-1 none TooManyTainted"},
		"an own taint that was taken away from a node that is not healthy yet": {change: facts(func(f *Facts) { at := metav1.NewTime(ago(time.Hour)); f.Nodes[2].Status.Tainted = &at }), want: "node-1 none TooManyTainted"},
		"an own taint on a node that was deleted": {want: "node-1 taint Lost", change: facts(func(f *Facts) {
			at := metav1.NewTime(ago(time.Hour))
			f.Nodes[2].Node.Exists, f.Nodes[2].Status.Tainted = false, &at
		})},
		"an operator's taint is none of ours": {change: facts(func(f *Facts) { f.Nodes[2].Node.OutOfService = true }), want: "node-1 taint Lost"},
	} {
		t.Run(name, func(t *testing.T) {
			tainting, f := lostWorld()
			c.change(&tainting, &f)
			verdicts := tainting.Judge(f)
			var got []string
			for _, v := range verdicts {
				got = append(got, fmt.Sprintf("%s %s %s", v.Node, v.Action, v.Reason))
			}
			if got := strings.Join(got, "; "); got != c.want {
				t.Fatalf("got %q, want %q: %+v", got, c.want, verdicts)
			}
			if len(verdicts) > 0 && !strings.Contains(verdicts[0].Message, c.says) {
				t.Errorf("%q does not say %q", verdicts[0].Message, c.says)
			}
		})
	}
}

// lose nodes at one time.
func (f *Facts) lose(d time.Duration, nodes ...int) {
	for _, i := range nodes {
		f.Nodes[i].lose(d)
	}
}

// zones puts nodes into a zone of their own.
func (f *Facts) zones(zone string, nodes ...int) {
	for _, i := range nodes {
		f.Nodes[i].Labels = map[string]string{zoneLabel: zone}
	}
}

func TestRecentLossIsCheckedAgain(t *testing.T) {
	tainting, f := lostWorld()
	f.Nodes[1].lose(3 * time.Minute)
	if v := tainting.Judge(f)[0]; v.After != 2*time.Minute {
		t.Errorf("looked at again after %s", v.After)
	}
}

// A glance at a cache finds the nodes that are worth a closer look, and no fewer.
func TestGlanceNeedsNoHeartbeats(t *testing.T) {
	tainting, f := lostWorld()
	f.Read = time.Time{}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		n.Heartbeat = time.Time{}
	}
	if v := tainting.Judge(f)[0]; v.Action != None {
		t.Errorf("tainted without a closer look: %+v", v)
	}
	if v := tainting.Glance(f)[0]; v.Action != Now {
		t.Errorf("a glance sees nothing: %+v", v)
	}
}

func TestCheckRefusesBadRules(t *testing.T) {
	for _, good := range []Rules{{}, {Mode: DryRun, MaxShare: 100}, Rules{}.Defaulted()} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []Rules{
		{Mode: "dry-run"}, {MaxShare: 101}, {MaxShare: -1}, {StormShare: 101}, {NotReadyFor: -1}, {StormWindow: -1}, {MaxStaleness: -1}, {MaxNodes: -1}, {StormNodes: -1},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}
