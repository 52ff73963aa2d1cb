package fence

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Volume is what is read of a PersistentVolume. Driver is empty if it is not a CSI volume.
type Volume struct {
	Name           string
	Driver, Handle string
	ClusterID      string
	AccessModes    []string
	// Block: it is a block device (volumeMode), without a file system.
	Block bool
	// Attributes are its volumeAttributes.
	Attributes map[string]string
	// Secret that deletes it: the secret to fence with, if it has one.
	Secret *v1alpha1.SecretReference
}

// Shared volumes may be written to from several nodes at once.
func (v Volume) Shared() bool { return slices.Contains(v.AccessModes, "ReadWriteMany") }

// HasManyWriters reports whether a volume is a shared file system: the only kind of volume that two nodes may write to at once.
// A shared block device is attached to two nodes while a virtual machine migrates, and nothing but that machine keeps two writers
// apart; a volume of ReadWriteOnce and ReadOnlyMany may be attached to many, and Kubernetes does not see to it that one writes.
func (v Volume) HasManyWriters() bool { return v.Shared() && !v.Block }

// exclusive volumes are attached to one node at a time: Kubernetes sees to it
// (k8s.io/kubernetes/pkg/volume/util.IsMultiAttachAllowed).
func (v Volume) exclusive() bool {
	return !slices.ContainsFunc(v.AccessModes, func(m string) bool { return m == "ReadWriteMany" || m == "ReadOnlyMany" })
}

// ReadOnly volumes have no writers, so no node holds them.
func (v Volume) ReadOnly() bool {
	return len(v.AccessModes) > 0 && !slices.ContainsFunc(v.AccessModes, func(m string) bool { return m != "ReadOnlyMany" })
}

// Held is the volume as a NodeFence remembers it.
func (v Volume) Held() v1alpha1.HeldVolume {
	return v1alpha1.HeldVolume{PersistentVolume: v.Name, Driver: v.Driver, VolumeHandle: v.Handle, ClusterID: v.ClusterID, Shared: v.Shared(), Block: v.Block}
}

// SameVolume reports whether two entries may be one volume: PersistentVolumes of two names may have one handle, and a
// record of an older version has no handle.
func SameVolume(a, b v1alpha1.HeldVolume) bool {
	return a.PersistentVolume == b.PersistentVolume || a.VolumeHandle != "" && a.VolumeHandle == b.VolumeHandle && a.Driver == b.Driver
}

// sameEntry: the entries are of one PersistentVolume. The names stay on record for the API server's policies.
func sameEntry(a, b v1alpha1.HeldVolume) bool {
	return a.PersistentVolume == b.PersistentVolume && (a.VolumeHandle == "" || b.VolumeHandle == "" || a.VolumeHandle == b.VolumeHandle)
}

// find a volume among others; -1 is none.
func find(v v1alpha1.HeldVolume, among []v1alpha1.HeldVolume) int {
	return slices.IndexFunc(among, func(other v1alpha1.HeldVolume) bool { return SameVolume(v, other) })
}

// Use is what the cluster shows of volumes on a node.
type Use struct {
	// Attached names the PersistentVolumes of the node's VolumeAttachments, and Claimed
	// those of its pods' claims.
	Attached, Claimed []string
	// AttachedNames are the unique names in the node's status.volumesAttached, and
	// InUse those in its status.volumesInUse.
	AttachedNames, InUse []string
}

// Holding lists the volumes of protected drivers that a node holds. Each source alone has gaps: the kubelet's list is
// as old as its last report, and an attachment ends before the mount does.
//
// volumes are the PersistentVolumes that were found. One that was deleted under a running pod is still held: it is known by driver
// and handle, or from the records of the machines.
func Holding(use Use, volumes []Volume, recorded []v1alpha1.HeldVolume, protected func(driver string) bool) []v1alpha1.HeldVolume {
	var held []v1alpha1.HeldVolume
	known := map[string]bool{}
	for _, v := range volumes {
		if known[UniqueName(v.Driver, v.Handle)] = true; v.ReadOnly() {
			continue
		}
		held = use.add(held, v.Held(), protected)
	}
	for _, v := range recorded {
		unique, shown := UniqueName(v.Driver, v.VolumeHandle), use
		if known[unique] || v.VolumeHandle == "" && find(v, held) >= 0 { // a record of an older version has no handle
			continue
		}
		if slices.ContainsFunc(volumes, func(found Volume) bool { return found.Name == v.PersistentVolume }) {
			shown.Attached, shown.Claimed = nil, nil // of another volume, whose PersistentVolume has the name now
		}
		v.Until, known[unique] = nil, true
		held = shown.add(held, v, protected)
	}
	for _, unique := range slices.Concat(use.AttachedNames, use.InUse) {
		if driver, handle, ok := ParseUniqueName(unique); ok && !known[unique] {
			known[unique] = true
			held = use.add(held, v1alpha1.HeldVolume{PersistentVolume: handle, Driver: driver, VolumeHandle: handle}, protected)
		}
	}
	return sorted(held)
}

// add a volume if the node shows it.
func (use Use) add(held []v1alpha1.HeldVolume, v v1alpha1.HeldVolume, protected func(driver string) bool) []v1alpha1.HeldVolume {
	if v.Driver == "" || !protected(v.Driver) {
		return held
	}
	unique := UniqueName(v.Driver, v.VolumeHandle)
	attached := slices.Contains(use.Attached, v.PersistentVolume) || slices.Contains(use.AttachedNames, unique)
	claimed, inUse := slices.Contains(use.Claimed, v.PersistentVolume), slices.Contains(use.InUse, unique)
	if !attached && !claimed && !inUse {
		return held
	}
	v.Waiting, v.Detached = !attached && !claimed, !attached && inUse
	return append(held, v)
}

// Recorded are the volumes on the records of a node name.
func (n Namesakes) Recorded() (volumes []v1alpha1.HeldVolume) {
	for _, r := range n.Records {
		volumes = append(volumes, r.Status.Volumes...)
	}
	return volumes
}

// remembered joins what the cluster shows now with the record of the same volumes. A volume only waits if Fairlead has
// watched it from the start and it was never attached: a volume in use that was once attached may be mounted.
//
// After a return every volume has a grace period, shown or not: the first status of a kubelet that has started again still has
// the lists of before (kubernetes#33203), so that what the node shows now proves nothing.
func (f Facts) remembered() []v1alpha1.HeldVolume {
	now, away := slices.Clone(f.Holding), wasAway(f.Status, f.Node) && !f.otherBoot()
	for i := range now {
		v := &now[i]
		was := find(*v, f.Status.Volumes)
		v.Waiting = v.Waiting && !away && f.watched() && (was < 0 || f.Status.Volumes[was].Waiting)
		v.Detached = v.Detached && !v.Waiting && f.Node.Ready
		switch {
		case away && !f.overridden():
			v.Until = f.graceEnds()
		case was >= 0 && f.inGrace(f.Status.Volumes[was]):
			v.Until = f.Status.Volumes[was].Until
		}
	}
	return now
}

// graceEnds is when a grace period that begins now ends.
func (f Facts) graceEnds() *metav1.Time {
	until := metav1.NewTime(f.Now.Add(endsWithin).Truncate(time.Second))
	return &until
}

// watched reports whether Fairlead has observed the node without a gap lately.
func (f Facts) watched() bool {
	const late = RefreshEvery + time.Minute
	s := f.Status
	age, known := f.since(s.LastHealthy)
	return s.Phase == v1alpha1.NodeHealthy && s.Node == f.Node.Machine && f.Node.Ready && !f.Node.OutOfService && known && age < late
}

// ParseUniqueName reads an entry of status.volumesInUse of a CSI volume:
// kubernetes.io/csi/<driver>^<volumeHandle>. The handle may hold any character, "^" too.
func ParseUniqueName(unique string) (driver, handle string, ok bool) {
	name, isCSI := strings.CutPrefix(unique, "kubernetes.io/csi/")
	if !isCSI {
		return "", "", false
	}
	driver, handle, ok = strings.Cut(name, "^")
	return driver, handle, ok && driver != "" && handle != ""
}

// UniqueName is what ParseUniqueName reads.
func UniqueName(driver, handle string) string { return "kubernetes.io/csi/" + driver + "^" + handle }

// union of two lists of volumes; entries of now win.
func union(before, now []v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	all := slices.Clone(now)
	for _, v := range before {
		if !slices.ContainsFunc(now, func(n v1alpha1.HeldVolume) bool { return sameEntry(n, v) }) {
			all = append(all, v)
		}
	}
	return sorted(all)
}

func sorted(volumes []v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	slices.SortStableFunc(volumes, func(a, b v1alpha1.HeldVolume) int {
		return cmp.Or(cmp.Compare(a.PersistentVolume, b.PersistentVolume), cmp.Compare(a.VolumeHandle, b.VolumeHandle))
	})
	return slices.CompactFunc(volumes, sameEntry)
}
