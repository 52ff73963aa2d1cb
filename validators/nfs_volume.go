package validators

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Paths of a PersistentVolume.
const (
	attributesPath   = "spec.csi.volumeAttributes"
	mountOptionsPath = "spec.mountOptions"
)

// NFSVolumeFacts are the live facts about a PersistentVolume.
type NFSVolumeFacts struct {
	// Key of its NFSService. KeyProblem says why the key is unknown.
	Key        types.NamespacedName
	KeyProblem error
	// Service of the key; nil if it does not exist.
	Service *v1alpha1.NFSService
	// Statd: the nodes run rpc.statd.
	Statd bool
}

// ValidateNFSVolume checks a PersistentVolume of an NFS CSI driver: the share is absolute and clean, the sub-directory
// relative and clean, mount options are known and well formed, read_ahead_kb is a number, mountPermissions are octal, and
// the ports and the daemon that NFSv3 needs are there.
// A missing NFSService is a warning: the two may be created in any order.
//
// The webhook may fail open: the node plugin checks with the same functions.
//
// Objects: PersistentVolumes of Fairlead's NFS drivers, when created, and when
// mount options or attributes change.
// Source: "GKE NFS LoadBalancer CSI driver for Kubernetes" (which mounts any share and subdir), nfs(5).
func ValidateNFSVolume(p volume.View, old *volume.View, facts NFSVolumeFacts) Verdict {
	v := Verdict{Reason: ReasonValid}
	if old != nil && p.IsSame(*old) {
		return v
	}
	read, problems := volume.Read(attributesPath, p.Attributes(), mountOptionsPath, p.Spec.MountOptions)
	problems = append(problems, read.Options.CheckKnown(mountOptionsPath)...)
	if p.Spec.VolumeMode == string(corev1.PersistentVolumeBlock) {
		problems.Add("spec.volumeMode", "NFS serves files, not block devices: write %s", corev1.PersistentVolumeFilesystem)
	}
	if facts.KeyProblem != nil {
		problems.Add(attributesPath+"["+volume.ServiceAttribute+"]", "%s", facts.KeyProblem)
	}
	var service *definition.Service
	if facts.Service != nil {
		known, _ := definition.Read(facts.Service)
		service = &known
		problems = append(problems, checkPort(read, known)...)
	}
	problems = append(problems, definition.CheckMount(mountOptionsPath, read.Options, service, facts.Statd)...)
	if len(problems) > 0 {
		v.refuse(ReasonInvalidNFSVolume, fieldErrors(problems)...)
		return v
	}
	v.warnNFSVolume(read, facts)
	v.warnWithoutEffect(p, read)
	return v
}

// warnWithoutEffect names what people write in good faith, and neither the driver nor Kubernetes acts on.
func (v *Verdict) warnWithoutEffect(p volume.View, read volume.Volume) {
	for _, name := range volume.Unread(p.Attributes()) {
		v.warn("attribute %q has no effect: the driver reads %s", name, strings.Join(volume.Attributes(), ", "))
	}
	// The PersistentVolume controller finds nothing that deletes a CSI volume which no provisioner made (v1.37: pkg/controller/volume/persistentvolume, doDeleteVolume).
	if policy := p.Spec.Reclaim; policy != "" && policy != string(corev1.PersistentVolumeReclaimRetain) {
		v.warn("persistentVolumeReclaimPolicy %s has no effect: nothing deletes the share, and the PersistentVolume ends as Failed once its claim is gone; write %s", policy, corev1.PersistentVolumeReclaimRetain)
	}
	if slices.Contains(read.Options.Mount, "ro") {
		return
	}
	// The kubelet mounts by the pod's field alone (v1.37: pkg/volume/csi, getReadOnlyFromSpec).
	const help = "does not make mounts read-only: add the mount option ro, or set readOnly at the pods' persistentVolumeClaim"
	if isOnlyRead(p.Spec.AccessModes) {
		v.warn("access mode %s %s", corev1.ReadOnlyMany, help)
	} else if p.Spec.CSI.ReadOnly {
		v.warn("spec.csi.readOnly %s", help)
	}
}

func isOnlyRead(accessModes []string) bool {
	return len(accessModes) > 0 && !slices.ContainsFunc(accessModes, func(m string) bool { return m != string(corev1.ReadOnlyMany) })
}

// checkPort reports an option port= that is not the service's. With PerNode, each backend may have its own port.
func checkPort(read volume.Volume, service definition.Service) nfs.Problems {
	if service.Exposure == nfs.PerNode {
		return nil
	}
	_, problems := read.Options.ForServer(mountOptionsPath, service.Port)
	return problems
}

func (v *Verdict) warnNFSVolume(read volume.Volume, facts NFSVolumeFacts) {
	if read.Server != "" {
		v.warn("%s is ignored: the server comes from NFSService %s", field.NewPath(attributesPath).Key(volume.ServerAttribute), facts.Key)
	}
	if facts.Service == nil {
		v.Reason = ReasonNoNFSService
		v.warn("there is no NFSService %s: pods that use the volume wait until you create it", facts.Key)
		if read.Options.Version() == 3 {
			v.warn("NFSv3 needs an NFSService with exposure %s, or with 3 in spec.versions and with spec.health.mountPort", nfs.PerNode)
		}
		return
	}
	shares := facts.Service.Spec.Shares
	contains := func(share string) bool {
		return share == read.Share || strings.HasPrefix(read.Share, strings.TrimSuffix(share, "/")+"/")
	}
	if len(shares) > 0 && !slices.ContainsFunc(shares, contains) {
		v.warn("share %q is not probed: NFSService %s names %s; add the share to spec.shares, so that servers without it are taken out", read.Share, facts.Key, quotedList(shares))
	}
}

func quotedList(texts []string) string {
	var quoted []string
	for _, text := range texts {
		quoted = append(quoted, fmt.Sprintf("%q", text))
	}
	return catalog.FirstOf(quoted)
}
