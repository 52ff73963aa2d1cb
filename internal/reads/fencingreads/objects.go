package fencingreads

import (
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
)

// FenceNode is what fencing reads of a Node object.
func FenceNode(n *corev1.Node) fence.Node {
	node := fence.Node{
		Name: n.Name, Exists: true, UID: n.UID,
		Boot:         v1alpha1.Boot{SystemUUID: n.Status.NodeInfo.SystemUUID, BootID: n.Status.NodeInfo.BootID},
		RecordedLoss: n.Annotations[fence.RecordedLossAnnotation],
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			node.Ready, node.Unknown, node.ReadyChanged = c.Status == corev1.ConditionTrue, c.Status == corev1.ConditionUnknown, c.LastTransitionTime.Time
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Key == fence.OutOfServiceTaint {
			node.OutOfService = true
			node.OwnTaint = node.OwnTaint || t.Value == fence.OwnTaintValue
			node.OthersTaint = node.OthersTaint || t.Value != fence.OwnTaintValue
		}
	}
	for _, a := range n.Status.Addresses {
		if a.Type != corev1.NodeInternalIP && a.Type != corev1.NodeExternalIP {
			continue
		}
		if address, err := netip.ParseAddr(a.Address); err == nil {
			node.Addresses = append(node.Addresses, address.Unmap())
		}
	}
	for _, name := range n.Status.VolumesInUse {
		node.InUse = append(node.InUse, string(name))
	}
	for _, a := range n.Status.VolumesAttached {
		node.Attached = append(node.Attached, string(a.Name))
	}
	return node
}

// FenceVolume is what fencing reads of a PersistentVolume, CSI or not.
func FenceVolume(pv *corev1.PersistentVolume) fence.Volume {
	v := fence.Volume{Name: pv.Name, Block: ptr.Deref(pv.Spec.VolumeMode, "") == corev1.PersistentVolumeBlock}
	for _, m := range pv.Spec.AccessModes {
		v.AccessModes = append(v.AccessModes, string(m))
	}
	if csi := pv.Spec.CSI; csi != nil {
		v.Driver, v.Handle, v.Attributes = csi.Driver, csi.VolumeHandle, csi.VolumeAttributes
		v.ClusterID = csi.VolumeAttributes[caches.ClusterIDAttribute]
	}
	if name, namespace := pv.Annotations[caches.DeletionSecretName], pv.Annotations[caches.DeletionSecretNamespace]; name != "" && namespace != "" {
		v.Secret = &v1alpha1.SecretReference{Name: name, Namespace: namespace}
	}
	return v
}

// maxMessage limits a message of another program in a record, in bytes. A record may have
// many messages, and events repeat them.
const maxMessage = 512

// FenceObject is what fencing reads of a NetworkFence.
func FenceObject(n *csiaddons.NetworkFence) fence.NetworkFence {
	f := fence.NetworkFence{
		Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels,
		Created: n.CreationTimestamp.Time, Deleting: n.DeletionTimestamp != nil,
		Class: n.Spec.NetworkFenceClassName, Driver: n.Spec.Driver, Parameters: n.Spec.Parameters, CIDRs: n.Spec.CIDRs,
		Unfenced: n.Spec.FenceState == csiaddons.Unfenced,
		Result:   n.Status.Result, Message: fence.Clip(n.Status.Message, maxMessage),
	}
	if s := n.Spec.Secret; s != nil {
		f.Secret = &v1alpha1.SecretReference{Name: s.Name, Namespace: s.Namespace}
	}
	return f
}

// NetworkFenceObject is the object to create for a fence.
func NetworkFenceObject(f fence.NetworkFence) *csiaddons.NetworkFence {
	n := &csiaddons.NetworkFence{Spec: csiaddons.NetworkFenceSpec{
		NetworkFenceClassName: f.Class, Driver: f.Driver, FenceState: csiaddons.Fenced,
		CIDRs: f.CIDRs, Parameters: f.Parameters,
	}}
	n.Name, n.Labels = f.Name, maps.Clone(f.Labels)
	if f.Unfenced {
		n.Spec.FenceState = csiaddons.Unfenced
	}
	if f.Secret != nil {
		n.Spec.Secret = &csiaddons.Secret{Name: f.Secret.Name, Namespace: f.Secret.Namespace}
	}
	return n
}
