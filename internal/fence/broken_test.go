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
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// fault replaces pieces of Fairlead by broken ones: what the gate says, what the controller reads and decides on.
type fault struct {
	gate           func(v Volume, node string, holders []Holder, p Policy) *Held
	facts          func(w *world, v view, f *Facts)
	believesCaches bool
	// The API server's policies: how they find records, hold volumes by them, and which losses they take for recorded.
	label        func(v1alpha1.NodeFenceStatus) string
	recordHolds  func(s v1alpha1.NodeFenceStatus, v Volume, sameNode bool) bool
	lossOnRecord func(worldNode, Volume) bool
}

func noFault() fault {
	return fault{gate: Attach, facts: func(*world, view, *Facts) {}, label: PhaseLabelValue, recordHolds: recordHolds, lossOnRecord: lossOnRecord}
}

// inFacts is a fault of what the controller reads.
func inFacts(change func(w *world, v view, f *Facts)) func(*fault) {
	return func(f *fault) { f.facts = change }
}

// inOthers is a fault of what the controller reads of other machines.
func inOthers(change func(*Other)) func(*fault) {
	return inFacts(func(_ *world, _ view, f *Facts) {
		for i := range f.Machines {
			change(&f.Machines[i])
		}
	})
}

// inGate changes what the gate reads of holders.
func inGate(change func(*Holder)) func(*fault) {
	return func(f *fault) {
		f.gate = func(v Volume, node string, holders []Holder, p Policy) *Held {
			for i := range holders {
				change(&holders[i])
			}
			return Attach(v, node, holders, p)
		}
	}
}

// inRecords changes which records the API server's policies hold volumes by.
func inRecords(seen func(s v1alpha1.NodeFenceStatus, sameNode bool) bool) func(*fault) {
	return func(f *fault) {
		f.recordHolds = func(s v1alpha1.NodeFenceStatus, v Volume, sameNode bool) bool {
			return seen(s, sameNode) && recordHolds(s, v, sameNode)
		}
	}
}

// faults break invariant 10.
var faults = map[string]struct {
	inject func(*fault)
	// want is what the model must report; default: invariant 10.
	want string
	// seed of a run that finds the fault: the first that is tried.
	seed int
}{
	"the gate lets everything go": {inject: func(f *fault) { f.gate = func(Volume, string, []Holder, Policy) *Held { return nil } }},
	"the gate ignores records":    {inject: inGate(func(h *Holder) { h.Status = v1alpha1.NodeFenceStatus{} })},
	"the gate sees attachments only": {inject: func(f *fault) {
		f.gate = func(v Volume, node string, holders []Holder, p Policy) *Held {
			for i := range holders {
				holders[i].Status.Volumes, holders[i].InUse = nil, false
			}
			return Attach(v, node, slices.DeleteFunc(holders, func(h Holder) bool { return !h.Node.Exists }), p)
		}
	}},
	"held volumes are not remembered":     {inject: inFacts(func(_ *world, _ view, f *Facts) { f.Status.Volumes = nil })},
	"the ledger is what is seen now":      {inject: inFacts(seenNow)},
	"any client of a volume is the node":  {inject: inFacts(anyClient), want: "blocks the healthy machine"},
	"the Node's address is guessed":       {inject: inFacts(guessed)},
	"earlier addresses are not fenced":    {inject: inFacts(withoutEarlier)},
	"fences need no confirmation":         {inject: inFacts(confirmed(func(NetworkFence) bool { return true }))},
	"unfencing confirms a fence":          {inject: inFacts(confirmed(func(n NetworkFence) bool { return n.Result == resultSucceeded }))},
	"nodes are unfenced without a reboot": {inject: inFacts(rebooted), want: "unfences the machine"},
	"another machine counts as the same":  {inject: inFacts(sameMachine)},
	"addresses of others are fenced": {inject: inOthers(func(o *Other) {
		o.Node.Addresses, o.ClientAddresses, o.Status.Identities = nil, nil, nil
	}), want: "blocks the healthy machine"},
	"shared addresses are unfenced": {inject: inOthers(func(o *Other) { o.Status.Fences = nil })},
	"a leftover that unfences is kept": {inject: inFacts(func(_ *world, _ view, f *Facts) {
		f.Fences = slices.DeleteFunc(f.Fences, func(n NetworkFence) bool { return !f.ours(n) && n.Unfenced })
	})},
	"policies ignore records of returned nodes": {inject: func(f *fault) {
		f.label = func(s v1alpha1.NodeFenceStatus) string { return string(s.Phase) }
	}},
	"policies ignore old mounts": {inject: inRecords(func(s v1alpha1.NodeFenceStatus, _ bool) bool {
		return s.Phase == v1alpha1.NodeLost || s.Phase == v1alpha1.NodeFencing
	})},
	"an attachment ends the grace period": {inject: inFacts(withoutGracePeriod), seed: 747},
	"policies ignore volumes in use": {inject: inFacts(func(_ *world, _ view, f *Facts) {
		for i := range f.Holding {
			f.Holding[i].Detached = false
		}
	})},
	"policies know machines by name only": {inject: inRecords(func(_ v1alpha1.NodeFenceStatus, sameNode bool) bool { return !sameNode }), seed: 641},
	"policies take losses for recorded":   {inject: func(f *fault) { f.lossOnRecord = func(n worldNode, _ Volume) bool { return !n.ready } }},
	"caches are believed":                 {inject: func(f *fault) { f.believesCaches = true }},
}

func guessed(_ *world, _ view, f *Facts) {
	for i, found := range f.Ledger {
		if len(found.Addresses) == 0 {
			f.Ledger[i].Addresses = []v1alpha1.ClientAddress{{CIDR: HostPrefix(f.Node.Addresses[0]).String(), Source: SourceCSIAddonsNode}}
			f.Ledger[i].Problem = ""
		}
	}
}

func withoutGracePeriod(_ *world, _ view, f *Facts) {
	for i, v := range f.Status.Volumes {
		if slices.Contains(VolumeNames(f.Holding), v.PersistentVolume) {
			f.Status.Volumes = slices.Clone(f.Status.Volumes)
			f.Status.Volumes[i].Until = nil
		}
	}
}

// seenNow reads the addresses when the node is lost.
func seenNow(_ *world, v view, f *Facts) {
	f.Status.Identities = v.sources(f.Node.Name)
	for i := range f.Status.Identities {
		for n := range f.Status.Identities[i].Addresses {
			f.Status.Identities[i].Addresses[n].LastSeen = metav1.NewTime(f.Now)
		}
	}
}

// anyClient takes all clients of the volumes for the node.
func anyClient(w *world, _ view, f *Facts) {
	if f.Status.Phase != v1alpha1.NodeFencing {
		return
	}
	f.Machines = nil
	for _, h := range f.Status.Volumes {
		for i := range f.Status.Identities {
			if !keyOf(h).of(f.Status.Identities[i]) {
				continue
			}
			for _, m := range w.machines {
				if a := m.at(volumeNamed(h.PersistentVolume)); m.mounts[h.PersistentVolume] != nil {
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

func rebooted(_ *world, _ view, f *Facts) {
	if p := f.Status.Phase; f.Node.Ready && (p == v1alpha1.NodeFenced || p == v1alpha1.NodeDrained) {
		f.Node.Machine.BootID += "-next"
	}
}

func sameMachine(w *world, v view, f *Facts) {
	if f.Replaced {
		f.Node, f.Replaced = w.node(f.Node.Name, v.nodes[f.Node.Name]), false
		f.Node.Machine.SystemUUID, f.Node.Machine.UID = f.Status.Node.SystemUUID, f.Status.Node.UID
		f.Ledger, f.Holding = v.sources(f.Node.Name), w.namesakes(v, f.Node.Name).Shown
	}
}

const maxRuns = 1000

// The random model finds each fault by itself, in a fixed order of seeds. Two faults need hundreds of runs, so a seed
// that finds them is tried first.
func TestModelFindsFaults(t *testing.T) {
	for name, test := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := noFault()
			test.inject(&broken)
			runs := rapid.Custom(func(t *rapid.T) string { return violation(t, broken) })
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
		must.Equal(t, w.keepsOut(m, "a", addr("10.0.0.17"), withdrawn), c.keepsOut, name)
	}
}

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
