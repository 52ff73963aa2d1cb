package fence

import (
	"slices"
	"strings"

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
	return v1alpha1.HeldVolume{PersistentVolume: v.Name, Driver: v.Driver, VolumeHandle: v.Handle, ClusterID: v.ClusterID, Shared: v.HasManyWriters()}
}

// Use is what the cluster shows of volumes on a node.
type Use struct {
	// Attached names the PersistentVolumes of the node's VolumeAttachments.
	Attached []string
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
	var known []v1alpha1.HeldVolume
	found, readOnly := map[string]string{}, map[string]bool{} // found has the unique name of each PersistentVolume
	for _, v := range volumes {
		unique := UniqueName(v.Driver, v.Handle)
		if found[v.Name] = unique; v.ReadOnly() {
			readOnly[unique] = true
			continue
		}
		known = join(known, v.Held())
	}
	for _, v := range recorded {
		v.Until, v.Released = nil, false
		known = join(known, v)
	}
	for _, unique := range slices.Concat(use.AttachedNames, use.InUse) {
		driver, handle, ok := ParseUniqueName(unique)
		v := v1alpha1.HeldVolume{PersistentVolume: handle, Driver: driver, VolumeHandle: handle, Unknown: true}
		if ok && !readOnly[unique] && find(v, known) < 0 {
			known = append(known, v)
		}
	}
	return sorted(slices.DeleteFunc(known, func(v v1alpha1.HeldVolume) bool {
		unique := UniqueName(v.Driver, v.VolumeHandle)
		attached := slices.ContainsFunc(NamesOf(v), func(name string) bool {
			now, there := found[name] // the name may be another volume's now
			return slices.Contains(use.Attached, name) && (!there || now == unique)
		})
		return v.Driver == "" || !protected(v.Driver) || !attached && !slices.Contains(use.AttachedNames, unique) && !slices.Contains(use.InUse, unique)
	}))
}

// Recorded are the volumes on the records of a node name.
func (n Namesakes) Recorded() (volumes []v1alpha1.HeldVolume) {
	for _, r := range n.Records {
		volumes = append(volumes, r.Spec.Volumes...)
	}
	return volumes
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
