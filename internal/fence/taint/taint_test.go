package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const ceph = "rook-ceph.rbd.csi.ceph.com"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ago is a time before noon.
func ago(d time.Duration) time.Time { return noon.Add(-d) }

// cephIsFenced is a policy by which Ceph's volumes are protected, and no others.
func cephIsFenced(mode fence.Mode) fence.Policy {
	return fence.Policy{MaxAge: fence.DefaultMaxAge, Storages: func(driver string) (fence.StoragePolicy, bool) {
		return fence.StoragePolicy{Mode: mode}, strings.HasSuffix(driver, "ceph.com")
	}}
}

// readyNode has been Ready for a day.
func readyNode(name string) Candidate {
	n := Candidate{
		Node:      fence.Node{Name: name, Exists: true, Boot: v1alpha1.Boot{BootID: "boot-" + name}, Ready: true, ReadyChanged: ago(24 * time.Hour)},
		Labels:    map[string]string{zoneLabel: "a"},
		Created:   ago(48 * time.Hour),
		Heartbeat: ago(5 * time.Second),
	}
	n.Record, n.Spec.NodeName, n.Spec.Boot = name, name, n.Node.Boot
	return n
}

// lose makes it a node that was silent for so long, and that can be fenced.
func (n *Candidate) lose(d time.Duration) {
	n.Node.Ready, n.Node.Unknown, n.Node.ReadyChanged = false, true, ago(d)
	n.Heartbeat = ago(d + 50*time.Second)
	n.Spec.LostSince = ptr.To(metav1.NewTime(ago(d)))
	n.Spec.Volumes = []v1alpha1.HeldVolume{{PersistentVolume: "pv-" + n.Node.Name, Driver: ceph, ClusterID: "c"}}
	n.Drivers = []string{ceph}
	n.Spec.Identities = []v1alpha1.StorageIdentity{{
		Driver: ceph, ClusterID: "c", Class: "class",
		Addresses: []v1alpha1.ClientAddress{{CIDR: "10.0.0." + strings.TrimPrefix(n.Node.Name, "node-") + "/32", Source: fence.SourceCSIAddonsNode, LastSeen: metav1.NewTime(ago(d + time.Minute))}},
	}}
}

// lostWorld has ten nodes, of which node-1 is lost since ten minutes.
func lostWorld() (Rules, Facts) {
	f := Facts{Now: noon, Read: ago(time.Second), Policy: cephIsFenced(fence.ModeFence)}
	for i := range 10 {
		f.Nodes = append(f.Nodes, readyNode(fmt.Sprintf("node-%d", i)))
	}
	f.Nodes[1].lose(10 * time.Minute)
	return Rules{Mode: On}, f
}

// A change of the rules and facts.
type change = func(*Rules, *Facts)

func all(changes ...change) change {
	return func(r *Rules, f *Facts) {
		for _, change := range changes {
			change(r, f)
		}
	}
}

func rules(set func(*Rules)) change { return func(r *Rules, _ *Facts) { set(r) } }
func facts(set func(*Facts)) change { return func(_ *Rules, f *Facts) { set(f) } }

// nodes changes node-1, or the nodes of these numbers.
func nodes(set func(*Candidate), of ...int) change {
	return func(_ *Rules, f *Facts) {
		if len(of) == 0 {
			of = []int{1}
		}
		for _, i := range of {
			set(&f.Nodes[i])
		}
	}
}

func lost(d time.Duration, of ...int) change { return nodes(func(n *Candidate) { n.lose(d) }, of...) }
func heard(d time.Duration, of ...int) change {
	return nodes(func(n *Candidate) { n.Heartbeat = ago(d) }, of...)
}
func label(key string, of ...int) change {
	return nodes(func(n *Candidate) { n.Labels[key] = "true" }, of...)
}
func inZone(zone string, of ...int) change {
	return nodes(func(n *Candidate) { n.Labels[zoneLabel] = zone }, of...)
}

func tainted(own bool, of ...int) change {
	return nodes(func(n *Candidate) { n.Node.OutOfService, n.Node.OwnTaint = true, own }, of...)
}

// recordedTaint: the record says that Fairlead has tainted the node.
func recordedTaint(d time.Duration, of ...int) change {
	return nodes(func(n *Candidate) { n.Spec.Tainted = ptr.To(metav1.NewTime(ago(d))) }, of...)
}

func TestVerdicts(t *testing.T) {
	const taints, storm = "node-1 taint Lost", "node-1 none Storm; node-2 none Storm; node-3 none Storm"
	mode := func(m Mode) change { return rules(func(r *Rules) { r.Mode = m }) }
	limits := func(share, nodes int) change { return rules(func(r *Rules) { r.MaxShare, r.MaxNodes = share, nodes }) }
	notReadyFor := func(d time.Duration) change { return rules(func(r *Rules) { r.NotReadyFor = d }) }
	selected := rules(func(r *Rules) { r.NodeSelector = labels.SelectorFromSet(labels.Set{"storage": "true"}) })
	ebsDetaches := rules(func(r *Rules) { r.ForceDetach = []string{"ebs.csi.aws.com"} })
	policy := func(m fence.Mode) change { return facts(func(f *Facts) { f.Policy = cephIsFenced(m) }) }
	read := func(at time.Time) change { return facts(func(f *Facts) { f.Read = at }) }
	clock := func(d time.Duration) change {
		return facts(func(f *Facts) { f.Now, f.Read = f.Now.Add(d), f.Read.Add(d) })
	}
	ready := func(d time.Duration) func(*Candidate) { return func(n *Candidate) { n.Node.ReadyChanged = ago(d) } }
	ebs := nodes(func(n *Candidate) { n.Drivers = append(n.Drivers, "ebs.csi.aws.com", "ebs.csi.aws.com") })
	gone := func(n *Candidate) { n.Node.Exists = false }
	seen := func(d time.Duration) func(*Candidate) {
		return func(n *Candidate) { n.Spec.Identities[0].Addresses[0].LastSeen = metav1.NewTime(ago(d)) }
	}
	young := func(n *Candidate) { n.Created, n.Node.ReadyChanged = ago(3*time.Minute), ago(2*time.Minute) }
	fifty := facts(func(f *Facts) {
		for i := range 40 {
			f.Nodes = append(f.Nodes, readyNode(fmt.Sprintf("node-%d", 10+i)))
		}
	})
	withAddress := func(n *Candidate) {
		n.Spec.Identities = []v1alpha1.StorageIdentity{{Addresses: []v1alpha1.ClientAddress{{CIDR: "10.0.0.1/32"}}}}
	}
	for name, c := range map[string]struct {
		change change
		want   string // verdicts in order: node, action and reason
		says   string // a part of the first message
	}{
		"lost":                             {all(), taints, "pv-node-1"},
		"dry run":                          {mode(DryRun), "node-1 wouldTaint Lost", ""},
		"mode off":                         {mode(Off), "node-1 none TaintingOff", ""},
		"no mode":                          {mode(""), "node-1 none TaintingOff", ""},
		"unknown mode":                     {mode("ON"), "node-1 none TaintingOff", ""},
		"paused":                           {facts(func(f *Facts) { f.Paused = true }), "node-1 none Paused", "AUTOMATIC_TAINTING"},
		"deleted":                          {nodes(gone), "", ""},
		"control plane":                    {label("node-role.kubernetes.io/control-plane"), "node-1 none ControlPlane", ""},
		"former label of control planes":   {label("node-role.kubernetes.io/master"), "node-1 none ControlPlane", ""},
		"etcd":                             {label("node-role.kubernetes.io/etcd"), "node-1 none ControlPlane", ""},
		"not selected":                     {selected, "node-1 none NotSelected", "storage=true"},
		"selected":                         {all(selected, label("storage")), taints, ""},
		"opted out":                        {nodes(func(n *Candidate) { n.OptedOut = true }), "node-1 none OptedOut", NoTaintAnnotation},
		"tainted by an operator":           {tainted(false), "node-1 none AlreadyTainted", ""},
		"recorded taint was removed":       {recordedTaint(time.Minute), "node-1 none TaintTaken", ""},
		"remembered taint was removed":     {nodes(func(n *Candidate) { n.Given = true }), "node-1 none TaintTaken", ""},
		"taint of an earlier loss":         {recordedTaint(time.Hour), taints, ""},
		"cordoned":                         {nodes(func(n *Candidate) { n.Cordoned = true }), "node-1 none Cordoned", ""},
		"being deleted":                    {nodes(func(n *Candidate) { n.Deleting = true }), "node-1 none Leaving", ""},
		"not Ready by its kubelet":         {nodes(func(n *Candidate) { n.Node.Unknown = false }), "node-1 none KubeletAlive", ""},
		"recent heartbeat":                 {heard(20 * time.Second), "node-1 none KubeletAlive", ""},
		"heartbeat after the loss":         {heard(3 * time.Minute), "node-1 none NotYet", ""},
		"clock of the node is ahead":       {heard(-time.Hour), taints, ""},
		"no heartbeat":                     {nodes(func(n *Candidate) { n.Heartbeat = time.Time{} }), taints, ""},
		"lost for almost five minutes":     {lost(5*time.Minute - time.Second), "node-1 none NotYet", "5m0s"},
		"lost for five minutes":            {lost(5 * time.Minute), taints, ""},
		"configured time":                  {notReadyFor(11 * time.Minute), "node-1 none NotYet", ""},
		"unknown time of the loss":         {nodes(func(n *Candidate) { n.Node.ReadyChanged, n.Heartbeat = time.Time{}, time.Time{} }), "node-1 none SinceUnknown", ""},
		"loss is not recorded":             {nodes(func(n *Candidate) { n.Spec.LostSince = nil }), "node-1 none NotRecorded", ""},
		"no record":                        {nodes(func(n *Candidate) { n.Record, n.Spec = "", v1alpha1.NodeFenceSpec{} }), "node-1 none NotRecorded", ""},
		"fenced":                           {nodes(func(n *Candidate) { n.Spec.Fences = []v1alpha1.Fence{{}} }), "node-1 none UnderWay", "NodeFence node-1"},
		"no volumes":                       {nodes(func(n *Candidate) { n.Spec.Volumes = nil }), "node-1 none NothingHeld", ""},
		"fencing is off":                   {policy(fence.ModeOff), "node-1 none SwitchedOff", ""},
		"unprotected volumes":              {ebs, "node-1 none Unprotected", "volumes of ebs.csi.aws.com are"},
		"volumes that may be detached":     {all(ebsDetaches, ebs), taints, ""},
		"guard only":                       {policy(fence.ModeGuard), "node-1 none GuardOnly", "would lose its pods"},
		"no recorded address":              {nodes(func(n *Candidate) { n.Spec.Identities = nil }), "node-1 none NoIdentity", ""},
		"stale address":                    {nodes(seen(10*time.Minute + fence.DefaultMaxAge + time.Second)), "node-1 none StaleLedger", ""},
		"address of a live node":           {nodes(withAddress, 2), "node-1 none AddressInUse", "node-2"},
		"refused fence":                    {nodes(func(n *Candidate) { n.Refused = fence.Refuse(fence.ReasonContradicted, "seen elsewhere") }), "node-1 none Contradicted", "seen elsewhere"},
		"old reading":                      {read(ago(61 * time.Second)), "node-1 none StaleView", "1m1s ago"},
		"no heartbeat of any node":         {heard(5*time.Minute, 0, 2, 3, 4, 5, 6, 7, 8, 9), "node-1 none StaleView", "no node at all"},
		"heartbeat of one other node":      {all(heard(5*time.Minute, 0, 2, 3, 4, 5, 6, 7, 8), heard(time.Minute, 9)), taints, ""},
		"own clock is ahead":               {clock(10 * time.Minute), "node-1 none StaleView", ""},
		"own clock is behind":              {all(notReadyFor(time.Second), lost(30*time.Minute), clock(-10*time.Minute)), "node-1 none StaleView", ""},
		"three of ten lost together":       {all(lost(9*time.Minute, 2), lost(6*time.Minute, 3)), storm, "more than 2 nodes"},
		"loss after an old storm":          {lost(time.Hour, 2, 3, 4), "node-2 none Storm; node-3 none Storm; node-4 none Storm; node-1 none Storm", ""},
		"three of ten lost one by one":     {all(limits(100, 9), lost(7*time.Minute, 2), lost(16*time.Minute, 3)), "node-3 taint Lost; node-1 taint Lost; node-2 taint Lost", ""},
		"storm with two nodes back":        {all(lost(6*time.Minute), nodes(ready(2*time.Minute), 2, 3)), "node-1 none Storm", ""},
		"two nodes back for long":          {nodes(ready(6*time.Minute), 2, 3), taints, ""},
		"many new nodes":                   {all(lost(6*time.Minute), nodes(young, 2, 3, 4, 5, 6, 7, 8, 9)), taints, ""},
		"storm with an operator's taint":   {all(limits(100, 1), lost(9*time.Minute, 2, 3), tainted(false, 3)), "node-1 taint Lost; node-2 none TooManyTainted; node-3 none AlreadyTainted", ""},
		"storm with an own taint":          {all(limits(0, 2), lost(9*time.Minute, 2, 3), tainted(true, 3)), "node-1 none Storm; node-2 none Storm; node-3 none AlreadyTainted", ""},
		"ten of fifty lost together":       {all(fifty, limits(0, 10), lost(6*time.Minute, 2, 3, 4, 5, 6, 7, 8, 9, 10)), taints + "; node-10 taint Lost; node-2 taint Lost; node-3 taint Lost; node-4 taint Lost; node-5 taint Lost; node-6 taint Lost; node-7 taint Lost; node-8 taint Lost; node-9 taint Lost", ""},
		"one of three in a zone":           {inZone("z", 1, 2, 3), taints, ""},
		"one of two in a zone":             {inZone("z", 1, 2), "node-1 none ZoneShare", "1 of 2 nodes"},
		"tainted node in the zone":         {all(inZone("z", 1, 2, 3), tainted(false, 2)), "node-1 none ZoneShare", "2 of 3 nodes"},
		"lost control plane in the zone":   {all(inZone("z", 1, 2, 3), lost(time.Hour, 2), label("node-role.kubernetes.io/control-plane", 2)), "node-2 none ControlPlane; node-1 none ZoneShare", "node-2"},
		"no zones":                         {inZone("", 1, 2), "node-1 none ZoneShare", `zone ""`},
		"one at a time":                    {lost(30*time.Minute, 2), "node-2 taint Lost; node-1 none TooManyTainted", "pv-node-2"},
		"two at a time":                    {all(limits(0, 2), lost(30*time.Minute, 2)), "node-2 taint Lost; node-1 taint Lost", ""},
		"own taint on another node":        {tainted(true, 2), "node-1 none TooManyTainted", ""},
		"removed own taint, not yet Ready": {recordedTaint(time.Hour, 2), "node-1 none TooManyTainted", ""},
		"own taint on a deleted node":      {all(recordedTaint(time.Hour, 2), nodes(gone, 2)), taints, ""},
		"operator's taint on another node": {tainted(false, 2), taints, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, f := lostWorld()
			c.change(&r, &f)
			verdicts := r.Judge(f)
			var got []string
			for _, v := range verdicts {
				got = append(got, fmt.Sprintf("%s %s %s", v.Node, v.Action, v.Reason))
			}
			must.Equal(t, strings.Join(got, "; "), c.want, "%+v", verdicts)
			if len(verdicts) > 0 && !strings.Contains(verdicts[0].Message, c.says) {
				t.Errorf("%q does not say %q", verdicts[0].Message, c.says)
			}
		})
	}
}

func TestRecentLossIsCheckedAgain(t *testing.T) {
	r, f := lostWorld()
	f.Nodes[1].lose(3 * time.Minute)
	must.Equal(t, r.Judge(f)[0].After, 2*time.Minute)
}

// A glance at cached facts, without heartbeats, only selects nodes for a closer look.
func TestGlanceNeedsNoHeartbeats(t *testing.T) {
	r, f := lostWorld()
	f.Read = time.Time{}
	for i := range f.Nodes {
		f.Nodes[i].Heartbeat = time.Time{}
	}
	must.Equal(t, r.Judge(f)[0].Action, None)
	must.Equal(t, r.Glance(f)[0].Action, Now)
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
		must.Check(t, bad.Check() != nil, "%+v passes", bad)
	}
}
