package fence

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// endsWithin is the time for old containers on a node that came back in the same boot: a restarted kubelet does not list a
// volume that was detached by force, even while an old container writes to it.
const endsWithin = 5 * time.Minute

// unbroken reports whether a node has been Ready in the boot on record since the record was written, so that nothing was
// detached from it by force: Kubernetes does that to nodes that are not Ready, tainted or gone (v1.37.2,
// pkg/controller/volume/attachdetach/reconciler).
func unbroken(s v1alpha1.NodeFenceSpec, n Node) bool {
	return isSameReady(s, n) && !n.OutOfService && s.LostSince == nil
}

// isSameReady reports whether the node is Ready in the boot on record, and as it was when the record was written.
func isSameReady(s v1alpha1.NodeFenceSpec, n Node) bool {
	return isOf(s, n) && n.Ready && isSameState(s, n.UID, n.ReadyChanged)
}

func isSameState(s v1alpha1.NodeFenceSpec, uid types.UID, changed time.Time) bool {
	recorded := s.ReadyChanged == nil && changed.IsZero() || s.ReadyChanged != nil && s.ReadyChanged.Time.Equal(changed)
	return s.NodeUID == uid && recorded
}

// remember which volumes this boot may write to.
func (f Facts) remember(s *v1alpha1.NodeFenceSpec, step *Step) {
	var left []v1alpha1.HeldVolume
	trusted, was := unbroken(f.Spec, f.Node), s.Volumes
	for _, v := range union(f.Holding, was) {
		shown := find(v, f.Holding) >= 0
		if find(v, was) < 0 && onlyWaits(f.Spec, f.Node, v) {
			continue
		}
		v.Until = f.ownTime(v.Until)
		switch {
		case !f.working():
			v.Released = v.Released && (f.here() && f.Node.Ready || f.isSameLoss())
		case !trusted: // the node is back: a restarted kubelet's first status is of before (kubernetes#33203), so nothing that it shows counts
			v.Until = f.graceEnds()
		case f.isTorn(v): // its kubelet may start again, and list it no more
			v.Until = f.graceEnds()
		case v.Until == nil || f.untilGraceIsOver(v) == 0:
			v.Until, v.Released = nil, false
			if !shown {
				continue // given back in the right order
			}
		}
		switch {
		case v.Until == nil || !f.working():
		case f.isTorn(v): // its time has not begun
			step.lookAgain(endsWithin)
		default:
			step.lookAgain(f.untilGraceIsOver(v))
		}
		left = append(left, v)
	}
	s.Volumes = left
}

// onlyWaits reports whether a kubelet lists a volume that is not on record because a pod waits for it.
func onlyWaits(s v1alpha1.NodeFenceSpec, n Node, v v1alpha1.HeldVolume) bool {
	return unbroken(s, n) && !slices.Contains(n.Attached, UniqueName(v.Driver, v.VolumeHandle))
}

// isTorn reports whether an attachment was deleted by force, and the volume is listed since then.
func (f Facts) isTorn(v v1alpha1.HeldVolume) bool {
	volume := Volume{Driver: v.Driver, Handle: v.VolumeHandle}
	return slices.Contains(f.Torn, UniqueName(v.Driver, v.VolumeHandle)) || v.Until != nil && f.Node.uses(volume) && !f.Node.hasAttached(volume)
}

// ownTime begins a period again that another leader's clock may have begun.
func (f Facts) ownTime(until *metav1.Time) *metav1.Time {
	if until == nil {
		return nil
	}
	if begun := until.Add(-endsWithin); begun.Before(f.Started.Truncate(time.Second)) || begun.After(f.Now) {
		return f.graceEnds()
	}
	return until
}

func (f Facts) graceEnds() *metav1.Time {
	until := metav1.NewTime(f.Now.Add(endsWithin).Truncate(time.Second))
	return &until
}

// MayWrite reports whether processes of a boot may write to a volume. Node is the Node of that name as it is now.
//
// A node that is Ready without a break since the record was written is taken at its word, ahead of the record: what it neither
// lists nor has attached was given back, and what it lists without an attachment it only waits for.
func MayWrite(s v1alpha1.NodeFenceSpec, n Node, v Volume) bool {
	if s.Over || laterBoot(s, n) && !missed(s, n) { // the boot that was missed may be the one that is seen now
		return false
	}
	i := find(v.Held(), s.Volumes)
	here := isOf(s, n) || n.Exists && s.Boot == v1alpha1.Boot{}
	shown := here && (n.uses(v) || n.hasAttached(v))
	switch {
	case unbroken(s, n) && i >= 0:
		if s.Volumes[i].Until == nil && !shown {
			return false
		}
	case unbroken(s, n):
		if !n.hasAttached(v) {
			return false
		}
	case i < 0 && !shown:
		return false
	case i >= 0 && s.Volumes[i].Released && isSameLoss(s, n):
		return false
	}
	if i >= 0 && !s.Volumes[i].Unknown {
		v.ClusterID = s.Volumes[i].ClusterID // by which the boot mounted it
	}
	// A Node that was deleted while Fairlead did not look may have been in another boot.
	return !refused(s, v) || !isOf(s, n) && s.NodeUID != ""
}

// isSameLoss reports whether the node has not come back since the record was written, as far as its Node shows.
func isSameLoss(s v1alpha1.NodeFenceSpec, n Node) bool {
	if !isOf(s, n) {
		return s.LostSince != nil && s.NodeUID == ""
	}
	return s.LostSince != nil && !n.Ready && isSameState(s, n.UID, n.ReadyChanged)
}

// isSameLoss also knows how the Node was deleted.
func (f Facts) isSameLoss() bool {
	return isSameLoss(f.Spec, f.Node) || !f.Node.Exists && f.Spec.LostSince != nil && isSameState(f.Spec, f.Deleted.UID, f.Deleted.ReadyChanged)
}

// refused reports whether the storage of a volume confirmedly refuses all addresses of a boot.
func refused(s v1alpha1.NodeFenceSpec, v Volume) bool {
	k := key{v.Driver, v.ClusterID}
	identity, _ := k.in(s.Identities)
	return !s.Unseen && slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool {
		return keyOfFence(r) == k && r.State == v1alpha1.FenceFenced && covers(r, identity)
	})
}

// SameVolume reports whether two entries are one volume, whatever its PersistentVolumes are called.
func SameVolume(a, b v1alpha1.HeldVolume) bool {
	return a.VolumeHandle == b.VolumeHandle && a.Driver == b.Driver
}

// find a volume among others; -1 is none.
func find(v v1alpha1.HeldVolume, among []v1alpha1.HeldVolume) int {
	return slices.IndexFunc(among, func(other v1alpha1.HeldVolume) bool { return SameVolume(v, other) })
}

// union of two lists of volumes; entries of now win.
func union(before, now []v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	all := slices.Clone(now)
	for _, v := range before {
		all = join(all, v)
	}
	return sorted(all)
}

// join adds a volume to a list. If the list has it, it gets the names of the other entry, and is shared only if both say so.
func join(list []v1alpha1.HeldVolume, v v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	i := find(v, list)
	if i < 0 {
		return append(list, v)
	}
	known := &list[i]
	switch {
	case v.Unknown:
		return list
	case known.Unknown:
		until, wasReleased := known.Until, known.Released
		*known = v
		known.Until, known.Released = until, wasReleased
		return list
	}
	for _, name := range NamesOf(v) {
		if !slices.Contains(NamesOf(*known), name) {
			known.OtherNames = append(slices.Clip(known.OtherNames), name)
		}
	}
	known.Shared = known.Shared && v.Shared
	return list
}

func sorted(volumes []v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	slices.SortFunc(volumes, func(a, b v1alpha1.HeldVolume) int {
		return cmp.Or(strings.Compare(a.PersistentVolume, b.PersistentVolume), strings.Compare(a.VolumeHandle, b.VolumeHandle), strings.Compare(a.Driver, b.Driver))
	})
	return volumes
}

// NamesOf a volume's PersistentVolumes.
func NamesOf(v v1alpha1.HeldVolume) []string {
	return append([]string{v.PersistentVolume}, v.OtherNames...)
}

// VolumeNames are the names of their PersistentVolumes, one for each volume.
func VolumeNames(volumes []v1alpha1.HeldVolume) []string {
	var names []string
	for _, v := range volumes {
		names = append(names, v.PersistentVolume)
	}
	return names
}
