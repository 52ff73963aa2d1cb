package fence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// fault is a piece of Fairlead that is broken on purpose: what the gate says, what the
// controller reads, and what it decides on.
type fault struct {
	gate           func(v Volume, node string, holders []Holder, p Policy) *Held
	facts          func(w *world, v view, f *Facts)
	believesCaches bool
	// What the API server's policies find records by, and hold by them.
	labelled func(v1alpha1.NodeFenceStatus) string
	holds    func(s v1alpha1.NodeFenceStatus, v Volume, sameNode bool) bool
	// recorded: which losses they take for recorded.
	recorded func(worldNode, Volume) bool
}

func (f fault) lossOnRecord(n worldNode, v Volume) bool {
	if f.recorded != nil {
		return f.recorded(n, v)
	}
	return lossOnRecord(n, v)
}

func (f fault) label(s v1alpha1.NodeFenceStatus) string {
	if f.labelled != nil {
		return f.labelled(s)
	}
	return PhaseLabelValue(s)
}

func (f fault) recordHolds(s v1alpha1.NodeFenceStatus, v Volume, sameNode bool) bool {
	if f.holds != nil {
		return f.holds(s, v, sameNode)
	}
	return recordHolds(s, v, sameNode)
}

// faults are the pieces that invariant 10 rests on, and what their loss must lead to.
var faults = map[string]struct {
	fault
	// want is what the model must say; invariant 10 where nothing is given.
	want string
	// seed of a run that finds the fault: the first of all that are tried.
	seed int
}{
	"the gate lets everything go": {fault: fault{gate: func(Volume, string, []Holder, Policy) *Held { return nil }}},
	"the gate does not know the records": {fault: fault{gate: func(v Volume, node string, holders []Holder, p Policy) *Held {
		for i := range holders {
			holders[i].Status = v1alpha1.NodeFenceStatus{}
		}
		return Attach(v, node, holders, p)
	}}},
	"the gate goes by attachments alone": {fault: fault{gate: func(v Volume, node string, holders []Holder, p Policy) *Held {
		for i := range holders {
			holders[i].Status.Volumes, holders[i].InUse = nil, false
		}
		return Attach(v, node, slices.DeleteFunc(holders, func(h Holder) bool { return !h.Node.Exists }), p)
	}}},
	"held volumes are not remembered":    {fault: fault{facts: func(_ *world, _ view, f *Facts) { f.Status.Volumes = nil }}},
	"the ledger is what is seen now":     {fault: fault{facts: seenNow}},
	"any client of a volume is the node": {fault: fault{facts: anyClient}, want: "shuts out the healthy machine"},
	"the Node's address is guessed": {fault: fault{facts: func(_ *world, _ view, f *Facts) {
		for i, found := range f.Ledger {
			if len(found.Addresses) == 0 {
				f.Ledger[i].Addresses = []v1alpha1.ClientAddress{{CIDR: HostPrefix(f.Node.Addresses[0]).String(), Source: SourceCSIAddonsNode}}
				f.Ledger[i].Problem = ""
			}
		}
	}}},
	"earlier addresses are not fenced":   {fault: fault{facts: withoutEarlier}},
	"a fence is not waited for":          {fault: fault{facts: confirmed(func(NetworkFence) bool { return true })}},
	"what is Unfenced passes for Fenced": {fault: fault{facts: confirmed(func(n NetworkFence) bool { return n.Result == resultSucceeded })}},
	"it is unfenced without a boot":      {fault: fault{facts: bootedAnew}, want: "unfences the machine"},
	"a machine that was renamed passes for rebooted": {fault: fault{facts: func(_ *world, _ view, f *Facts) {
		for i := range f.Others {
			f.Others[i].Node.Machine.BootID += "-anew"
		}
	}}, want: "unfences the machine"},
	"another machine passes for the same": {fault: fault{facts: sameMachine}},
	"an address of others is fenced": {fault: fault{facts: func(_ *world, _ view, f *Facts) {
		for i := range f.Others {
			o := &f.Others[i]
			o.Node.Addresses, o.ClientAddresses, o.Status.Identities = nil, nil, nil
		}
	}}, want: "shuts out the healthy machine"},
	"who shares an address is unfenced with it": {fault: fault{facts: func(_ *world, _ view, f *Facts) {
		for i := range f.Others {
			f.Others[i].Status.Fences = nil
		}
	}}},
	"a leftover that unfences is kept": {fault: fault{facts: func(_ *world, _ view, f *Facts) {
		f.Fences = slices.DeleteFunc(f.Fences, func(n NetworkFence) bool { return !f.ours(n) && n.Unfenced })
	}}},
	"policies find no record of a node that is back": {fault: fault{labelled: func(s v1alpha1.NodeFenceStatus) string { return string(s.Phase) }}},
	"policies hold nothing that is still mounted": {fault: fault{holds: func(s v1alpha1.NodeFenceStatus, v Volume, sameNode bool) bool {
		return (s.Phase == v1alpha1.NodeLost || s.Phase == v1alpha1.NodeFencing) && recordHolds(s, v, sameNode)
	}}},
	"what is attached again is forgotten to linger": {fault: fault{facts: func(_ *world, _ view, f *Facts) {
		for i, v := range f.Status.Volumes {
			if slices.ContainsFunc(f.Holding, func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == v.PersistentVolume }) {
				f.Status.Volumes = slices.Clone(f.Status.Volumes)
				f.Status.Volumes[i].Until = nil
			}
		}
	}}, seed: 747},
	"policies hold what lingers, and not what is in use": {fault: fault{facts: func(_ *world, _ view, f *Facts) {
		for i := range f.Holding {
			f.Holding[i].Detached = false
		}
	}}},
	"policies know machines by their names alone": {fault: fault{holds: func(s v1alpha1.NodeFenceStatus, v Volume, sameNode bool) bool {
		return !sameNode && recordHolds(s, v, sameNode)
	}}, seed: 641},
	"policies take every loss for recorded": {fault: fault{recorded: func(n worldNode, _ Volume) bool { return !n.ready }}},
	"caches are believed":                   {fault: fault{believesCaches: true}},
}

// seenNow: who is looked for when the node is lost, and not before.
func seenNow(_ *world, v view, f *Facts) {
	f.Status.Identities = v.sources(f.Node.Name)
	for i := range f.Status.Identities {
		for n := range f.Status.Identities[i].Addresses {
			f.Status.Identities[i].Addresses[n].LastSeen = metav1.NewTime(f.Now)
		}
	}
}

// anyClient: the node is where its volumes are open, whoever has them open.
func anyClient(w *world, _ view, f *Facts) {
	if f.Status.Phase != v1alpha1.NodeFencing {
		return
	}
	f.Others = nil
	for _, h := range f.Status.Volumes {
		for i := range f.Status.Identities {
			if !keyOf(h).of(f.Status.Identities[i]) {
				continue
			}
			for _, m := range w.machines {
				if a := m.at(volumeNamed(h.PersistentVolume)); m.mounts[h.PersistentVolume] {
					f.Status.Identities[i].Addresses = []v1alpha1.ClientAddress{{CIDR: HostPrefix(a).String(), Source: SourceCSIAddonsNode, LastSeen: metav1.NewTime(f.Now)}}
				}
			}
		}
	}
}

func withoutEarlier(_ *world, _ view, f *Facts) {
	f.Status.Identities = slices.Clone(f.Status.Identities)
	for i := range f.Status.Identities {
		all := slices.Clone(f.Status.Identities[i].Addresses)
		f.Status.Identities[i].Addresses = slices.DeleteFunc(all, func(a v1alpha1.ClientAddress) bool { return a.Earlier })
	}
}

func confirmed(when func(NetworkFence) bool) func(*world, view, *Facts) {
	return func(_ *world, _ view, f *Facts) {
		for i, n := range f.Fences {
			if !n.Unfenced && when(n) {
				f.Fences[i].Result, f.Fences[i].Message = resultSucceeded, fencedMessage
			}
		}
	}
}

func bootedAnew(_ *world, _ view, f *Facts) {
	if p := f.Status.Phase; f.Node.Ready && (p == v1alpha1.NodeFenced || p == v1alpha1.NodeDrained) {
		f.Node.Machine.BootID += "-anew"
	}
}

func sameMachine(w *world, v view, f *Facts) {
	if f.Replaced {
		f.Node, f.Replaced = w.node(f.Node.Name, v.nodes[f.Node.Name]), false
		f.Node.Machine.SystemUUID, f.Node.Machine.UID = f.Status.Node.SystemUUID, f.Status.Node.UID
		f.Ledger, f.Holding = v.sources(f.Node.Name), w.namesakes(v, f.Node.Name).Shown
	}
}

// maxRuns of the model until it must have found a fault.
const maxRuns = 1000

// The random model finds each fault by itself, in a fixed order of seeds. Two faults need hundreds of runs, so a seed
// that finds them is tried first.
func TestModelFindsFaults(t *testing.T) {
	for name, test := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := rapid.Custom(func(t *rapid.T) string { return violation(t, test.fault) })
			want := cmp.Or(test.want, "invariant 10")
			for run := range maxRuns {
				seed := (test.seed + run) % maxRuns
				if found, _, _ := strings.Cut(runs.Example(seed), "\n"); strings.Contains(found, want) {
					t.Logf("found with seed %d: %s", seed, found)
					return
				}
			}
			t.Fatalf("%q is not found in %d runs", want, maxRuns)
		})
	}
}

// A release is blamed for what the fences of a boot have kept out, and for nothing that they never could.
func TestModelBlamesReleaseOfKnownAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		fenced, known string
		boot          int
		keepsOut      bool
	}{
		"named by the fence":            {"10.0.0.17/32", "10.0.0.5/32", 0, true},
		"known, and left out":           {"10.0.0.5/32", "10.0.0.17/32", 0, true},
		"never known":                   {"10.0.0.5/32", "10.0.0.5/32", 0, false},
		"named, and the machine booted": {"10.0.0.17/32", "10.0.0.17/32", 1, false},
	} {
		w := newWorld(1, false)
		m := w.machines[0]
		r := v1alpha1.Fence{Name: "confirmed", Incident: "x", Driver: rbd, ClusterID: "a", CIDRs: []string{c.fenced}}
		w.targets[r.Name], w.stood[r.Name] = m.bootID(), true
		w.records["former-name"] = record{node: "former-name", status: v1alpha1.NodeFenceStatus{
			Incident: "x", Fences: []v1alpha1.Fence{r}, Identities: []v1alpha1.StorageIdentity{identity(rbd, "a", c.known)},
		}}
		m.boot = c.boot
		withdrawn := &networkFence{NetworkFence: NetworkFence{Name: "withdrawn"}, target: m.bootID()}
		if got := w.keepsOut(m, "a", addr("10.0.0.17"), withdrawn); got != c.keepsOut {
			t.Errorf("%s: it keeps the machine out: %t", name, got)
		}
	}
}

// violation of what must hold, in one run.
func violation(t *rapid.T, broken fault) (found string) {
	defer func() {
		if r := recover(); r != nil {
			if !t.Failed() {
				panic(r)
			}
			found = fmt.Sprint(r)
		}
	}()
	interleave(t, broken)
	return ""
}
