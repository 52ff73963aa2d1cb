package fence

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// What the explorer must find: faults that were there once, and the rules of this package, taken out one by one.
func TestExplorerFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		world, want string
		broken      stateMachine
	}{
		"the gate lets everything go":                         {"one loss", "two writers", stateMachine{holders: func(h *Holder) { *h = Holder{Node: Node{Name: h.Node.Name, Exists: true, Ready: true}} }}},
		"the gate ignores records":                            {"restart", "two writers", stateMachine{holders: func(h *Holder) { h.Spec = v1alpha1.NodeFenceSpec{Boot: h.Spec.Boot} }}},
		"a node that returned has no grace period":            {"restart", "two writers", stateMachine{facts: withoutReturn}},
		"a grace period holds nothing":                        {"read by many", "two writers", stateMachine{holders: withoutGrace}},
		"a volume is gone with its PersistentVolume":          {"volume", "two writers", stateMachine{forgets: true}},
		"a round does not read its nodes again":               {"round", "healthy node fenced", stateMachine{hasty: true}},
		"a node is fenced as soon as its Node is deleted":     {"deleted", "healthy node fenced", stateMachine{facts: lostLongAgo}},
		"held volumes are not remembered":                     {"restart", "two writers", stateMachine{facts: func(_ *small, _ int, f *Facts) { f.Spec.Volumes = nil }}},
		"a fence needs no confirmation":                       {"late", "two writers", stateMachine{facts: confirmed(func(NetworkFence) bool { return true })}},
		"unfencing confirms a fence":                          {"late", "two writers", stateMachine{facts: confirmed(func(n NetworkFence) bool { return n.Result != "" })}},
		"a node is unfenced without a reboot":                 {"one loss", "two writers", stateMachine{facts: func(_ *small, _ int, f *Facts) { f.Later = f.Later || f.Node.Ready && len(f.Spec.Fences) > 0 }}},
		"a boot that was not seen counts as fenced":           {"another address", "two writers", stateMachine{facts: func(_ *small, _ int, f *Facts) { f.Deleted.Boot = f.Spec.Boot; f.Spec.Unseen = false }, holders: func(h *Holder) { h.Spec.Unseen = false }}},
		"a missing Node is a reboot":                          {"deleted", "two writers", stateMachine{facts: func(_ *small, _ int, f *Facts) { f.Later = f.Later || !f.Node.Exists }, holders: func(h *Holder) { h.Spec.Over = h.Spec.Over || !h.Node.Exists }}},
		"a volume is held while it is on record":              {"healthy", "healthy cluster slowed", stateMachine{holders: withGrace}},
		"a missed loss counts as none":                        {"restart", "two writers", stateMachine{facts: asRecorded, holders: func(h *Holder) { sameTime(&h.Spec, h.Node) }}},
		"an attachment deleted by force counts as given back": {"torn", "two writers", stateMachine{facts: func(_ *small, _ int, f *Facts) { f.Torn = nil }}},
		"an act is in force in a later loss":                  {"act", "two writers", stateMachine{holders: releasedForGood}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldNamed(c.world)
			e := explore(&w, c.broken, 5*time.Minute, c.want)
			must.True(t, len(e.found) > 0 && strings.HasPrefix(e.found[len(e.found)-1], c.want), "%q is not found: %s, %v", c.want, e.summary(), e.found)
			t.Log(e.found[len(e.found)-1])
		})
	}
}

func worldNamed(name string) exploredWorld {
	return *exploredWorlds[slices.IndexFunc(exploredWorlds, func(w *exploredWorld) bool { return w.name == name })]
}

func withoutReturn(_ *small, _ int, f *Facts) {
	if f.working() {
		asRecorded(nil, 0, f)
		f.Spec.LostSince = nil
	}
}

func asRecorded(_ *small, _ int, f *Facts) { sameTime(&f.Spec, f.Node) }

// sameTime: as if the record were of the present state of the node.
func sameTime(s *v1alpha1.NodeFenceSpec, n Node) {
	if isOf(*s, n) {
		s.NodeUID, s.ReadyChanged = n.UID, &metav1.Time{Time: n.ReadyChanged}
	}
}

func withoutGrace(h *Holder) {
	h.Spec.Volumes = slices.Clone(h.Spec.Volumes)
	for i := range h.Spec.Volumes {
		h.Spec.Volumes[i].Until = nil
	}
}

func withGrace(h *Holder) {
	h.Spec.Volumes = slices.Clone(h.Spec.Volumes)
	for i := range h.Spec.Volumes {
		h.Spec.Volumes[i].Until = &metav1.Time{}
	}
}

func releasedForGood(h *Holder) {
	if len(h.Spec.Acts) > 0 {
		h.Spec.Volumes = nil
		h.Node.InUse, h.Node.Attached = nil, nil
	}
}

func lostLongAgo(_ *small, _ int, f *Facts) {
	if !f.Node.Exists {
		since := metav1.NewTime(f.Now.Add(-deletedFor))
		f.Spec.LostSince, f.Started, f.Deleted.At = &since, time.Time{}, time.Time{}
	}
}

// confirmed takes NetworkFences for confirmed.
func confirmed(when func(NetworkFence) bool) func(*small, int, *Facts) {
	return func(_ *small, _ int, f *Facts) {
		f.Fences = slices.Clone(f.Fences)
		for i, n := range f.Fences {
			if !n.Unfenced && when(n) {
				f.Fences[i].Result, f.Fences[i].Message = resultSucceeded, fencedMessage
			}
		}
	}
}
