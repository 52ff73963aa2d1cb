package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
)

// ClaimedVolume is a protected volume that a pod uses, and the claim it uses it by.
type ClaimedVolume struct {
	fence.Volume
	Namespace, Claim string
}

// PodVolumes are the protected volumes that a pod will mount. The claims are read
// live: a cache that has not seen one bound would say that nobody can hold it. A
// claim without a volume is held by nobody.
func (r *FenceReader) PodVolumes(ctx context.Context, pod *corev1.Pod) ([]ClaimedVolume, error) {
	var volumes []ClaimedVolume
	for _, name := range claims(pod) {
		var claim corev1.PersistentVolumeClaim
		err := r.live.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, &claim)
		if apierrors.IsNotFound(err) || err == nil && claim.Spec.VolumeName == "" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading claim %s/%s: %w", pod.Namespace, name, err)
		}
		found := map[string]fence.Volume{}
		if err := r.findVolume(ctx, claim.Spec.VolumeName, found); err != nil {
			return nil, err
		}
		if v, there := found[claim.Spec.VolumeName]; there && r.Protects(v.Driver) {
			volumes = append(volumes, ClaimedVolume{v, pod.Namespace, name})
		}
	}
	return volumes, nil
}

// Holders are all nodes that have or had a volume, by what their records
// remember, attachments, the nodes' own lists and pods.
func (r *FenceReader) Holders(ctx context.Context, v ClaimedVolume) ([]fence.Holder, error) {
	names := map[string]bool{}
	var records v1alpha1.NodeFenceList
	if err := r.objects.List(ctx, &records); err != nil {
		return nil, fmt.Errorf("listing NodeFences: %w", err)
	}
	byName := map[string]*v1alpha1.NodeFence{}
	for i := range records.Items {
		record := &records.Items[i]
		byName[record.Name] = record
		if slices.ContainsFunc(record.Status.Volumes, func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == v.Name }) {
			names[record.Name] = true
		}
	}
	attached, err := r.AttachedNodes(ctx, v.Name)
	if err != nil {
		return nil, err
	}
	for _, name := range attached {
		names[name] = true
	}
	// Pods of the claim's namespace: a driver without attachments leaves no other trace.
	var pods corev1.PodList
	if err := r.live.List(ctx, &pods, client.InNamespace(v.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", v.Namespace, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Spec.NodeName != "" && !Ended(pod) && slices.Contains(claims(pod), v.Claim) {
			names[pod.Spec.NodeName] = true
		}
	}
	var nodes corev1.NodeList
	if err := r.objects.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	facts := map[string]fence.Node{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if slices.Contains(volumesInUse(n), "kubernetes.io/csi/"+FenceHandle(v.Driver, v.Handle)) {
			names[n.Name] = true
		}
		facts[n.Name] = FenceNode(n)
	}
	var holders []fence.Holder
	for name := range names {
		h := fence.Holder{Node: facts[name]}
		h.Node.Name = name
		if record := byName[name]; record != nil {
			h.Status = record.Status
			h.Override = fence.ReadOverride(record.Annotations, record.Status)
		}
		holders = append(holders, h)
	}
	slices.SortFunc(holders, func(a, b fence.Holder) int { return strings.Compare(a.Node.Name, b.Node.Name) })
	return holders, nil
}
