package fencingreads

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// attachmentsNow lists the attachments of protected drivers live, by node.
func (r *FenceReader) attachmentsNow(ctx context.Context) (map[string][]attachedVolume, error) {
	attached := map[string][]attachedVolume{}
	err := lists.ForEach(ctx, lists.NewLive(r.live), &storagev1.VolumeAttachmentList{}, func(va *storagev1.VolumeAttachment) {
		// Inline volumes (migrated in-tree drivers) have no PersistentVolume. No protected driver has them.
		if va.Spec.Source.PersistentVolumeName != nil && r.Protects(va.Spec.Attacher) {
			attached[va.Spec.NodeName] = append(attached[va.Spec.NodeName], attachedOf(va))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	return attached, nil
}

// attachedAndNode reads attachments before the node. A loss of the node that came before the end of an attachment is
// then never missed.
func (r *FenceReader) attachedAndNode(ctx context.Context, sakes *fence.Namesakes) ([]attachedVolume, *corev1.Node, error) {
	attached := r.held.attachedTo(sakes.Node.Name)
	if r.snapshot == nil {
		node, err := r.node(ctx, r.objects, sakes)
		return attached, node, err
	}
	// Of a node that is not Ready, nothing is forgotten. Before anything is taken from it or given back, it is read once more.
	if node := r.snapshot.nodes[sakes.Node.Name]; node != nil {
		if sakes.Node = FenceNode(node); !sakes.Node.Ready {
			return attached, node, nil
		}
	}
	node, err := r.node(ctx, r.live, sakes)
	if err != nil || node == nil && isRecordedAsGone(sakes.Records) {
		return attached, nil, err
	}
	if node == nil {
		// No volumesInUse is left to check stale attachments against. A deleted node gets no new ones, so one live read is enough.
		now, err := r.attachments.Get(ctx)
		return now[sakes.Node.Name], nil, err
	}
	if was, _ := sakes.Present(); was.Name == "" || !sakes.Node.Ready || len(attached) == 0 {
		return attached, node, nil
	}
	// The index may still show a force-detached volume as attached, although the node may write to the volume.
	if attached, err = r.stillAttached(ctx, attached); err != nil {
		return nil, nil, err
	}
	node, err = r.node(ctx, r.live, sakes)
	return attached, node, err
}

// isRecordedAsGone reports whether all records that are not over say already that they have no Node.
func isRecordedAsGone(records []fence.Record) bool {
	gone := 0
	for _, r := range records {
		if !r.Spec.Over && r.Spec.NodeUID != "" {
			return false
		}
		if !r.Spec.Over {
			gone++
		}
	}
	return gone > 0
}

// node reads a Node; nil if there is none.
func (r *FenceReader) node(ctx context.Context, from client.Reader, sakes *fence.Namesakes) (*corev1.Node, error) {
	node := &corev1.Node{}
	if there, err := get(ctx, from, sakes.Node.Name, node); err != nil || !there {
		sakes.Node = fence.Node{Name: sakes.Node.Name}
		return nil, err
	}
	sakes.Node = FenceNode(node)
	return node, nil
}

// stillAttached returns the attachments that still exist, by live reads.
func (r *FenceReader) stillAttached(ctx context.Context, cached []attachedVolume) ([]attachedVolume, error) {
	var now []attachedVolume
	for _, a := range cached {
		var va storagev1.VolumeAttachment
		if there, err := get(ctx, r.live, a.name, &va); err != nil {
			return nil, err
		} else if there {
			now = append(now, attachedOf(&va))
		}
	}
	return now, nil
}

// seen is what the cluster shows under a node name. It may belong to several machines.
type seen struct {
	// unresolved: the node uses a volume whose PersistentVolume was not found.
	unresolved bool
	attached   []attachedVolume
	// pods that use protected volumes; unread: they could not be listed, so what is left is not known.
	pods   []corev1.Pod
	unread error
}

// seenOn collects all volumes, attachments and pods under a node name.
func (r *FenceReader) seenOn(ctx context.Context, sakes *fence.Namesakes, attached []attachedVolume) (seen, error) {
	s := seen{attached: attached}
	found := map[string]fence.Volume{}
	var use fence.Use
	slices.SortFunc(attached, func(a, b attachedVolume) int { return strings.Compare(a.volume+a.name, b.volume+b.name) })
	for _, a := range attached {
		use.Attached = append(use.Attached, a.volume)
		if err := r.findVolume(ctx, a.volume, found); err != nil {
			return s, err
		}
	}
	use.InUse, use.AttachedNames = sakes.Node.InUse, sakes.Node.Attached
	var err error
	if s.unresolved, err = r.findHandles(ctx, sakes.Node, found); err != nil {
		return s, err
	}
	pods, err := r.podsOn(ctx, sakes)
	s.unread = err
	for i := range pods {
		if r.usesProtected(&pods[i]) {
			s.pods = append(s.pods, pods[i])
		}
	}
	if sakes.Torn, err = r.torn(ctx, sakes.Node, attached, found); err != nil {
		return s, err
	}
	sakes.Shown = fence.Holding(use, slices.Collect(maps.Values(found)), sakes.Recorded(), r.Protects)
	return s, nil
}

// torn are the protected volumes that are attached by the Node's status, but have no attachment. Caches of two kinds may differ by
// a moment, so it is certain only by live reads, between which the Node did not change.
func (r *FenceReader) torn(ctx context.Context, node fence.Node, attached []attachedVolume, found map[string]fence.Volume) (torn []string, err error) {
	for _, unique := range node.Attached {
		driver, handle, ok := fence.ParseUniqueName(unique)
		name := attachmentName(driver, handle, node.Name)
		if !ok || !r.Protects(driver) || slices.ContainsFunc(attached, func(a attachedVolume) bool {
			v := found[a.volume]
			return a.name == name || v.Driver == driver && v.Handle == handle
		}) {
			continue
		}
		if r.snapshot != nil {
			if there, err := get(ctx, r.live, name, &storagev1.VolumeAttachment{}); err != nil {
				return nil, err
			} else if there {
				continue
			}
		}
		torn = append(torn, unique)
	}
	if len(torn) == 0 || r.snapshot == nil {
		return torn, nil
	}
	now := fence.Namesakes{Node: fence.Node{Name: node.Name}}
	if _, err := r.node(ctx, r.live, &now); err != nil || !reflect.DeepEqual(now.Node, node) {
		return nil, err // another look follows
	}
	return torn, nil
}

// left fills in what is left on the node.
func (s seen) left(f *fence.Facts) {
	requested := firstRequested(f)
	older := func(created time.Time) bool { return f.Node.Ready && !requested.IsZero() && !created.After(requested) }
	for _, a := range s.attached {
		what := fmt.Sprintf("VolumeAttachment %s of %s", a.name, a.volume)
		f.Left = append(f.Left, what)
		if older(a.createdAt()) {
			f.OldAttachments = append(f.OldAttachments, what)
		}
	}
	for i := range s.pods {
		pod := s.pods[i].Namespace + "/" + s.pods[i].Name
		f.Left = append(f.Left, "pod "+pod)
		if older(s.pods[i].CreationTimestamp.Time) {
			f.OldPods = append(f.OldPods, pod)
		}
	}
}

// firstRequested is when the first fence was requested: newer attachments are not from before the loss. Attachments are
// dated by the API server's clock, so the NetworkFence's creation time counts, if it exists. Times are in whole seconds.
func firstRequested(f *fence.Facts) time.Time {
	var first time.Time
	for _, r := range f.Spec.Fences {
		requested := r.Since.Time
		if i := slices.IndexFunc(f.Fences, func(n fence.NetworkFence) bool { return n.Name == r.Name && !n.Created.IsZero() }); i >= 0 {
			requested = f.Fences[i].Created
		}
		if first.IsZero() || requested.Before(first) {
			first = requested
		}
	}
	return first
}

// findVolume looks for a PersistentVolume by name. A volume may be attached before the watch has shown its PersistentVolume,
// so a live read follows.
func (r *FenceReader) findVolume(ctx context.Context, name string, found map[string]fence.Volume) error {
	if _, known := found[name]; known {
		return nil
	}
	if v, known := r.held.volume(name); known {
		found[name] = v
		return nil
	}
	var pv corev1.PersistentVolume
	there, err := get(ctx, r.live, name, &pv)
	if there {
		found[name] = FenceVolume(&pv)
	}
	return err // else deleted although attached: no pod can mount the volume again
}

// findHandles looks for the volumes that the Node lists by driver and handle. If no such PersistentVolume is known,
// the attachment names it: its name follows from volume and node. Without an attachment, the volume stays unresolved.
func (r *FenceReader) findHandles(ctx context.Context, node fence.Node, found map[string]fence.Volume) (unresolved bool, err error) {
	names := slices.Concat(node.InUse, node.Attached)
	slices.Sort(names)
	for _, unique := range slices.Compact(names) {
		driver, handle, ok := fence.ParseUniqueName(unique)
		if !ok || !r.Protects(driver) {
			continue
		}
		known := false
		for _, v := range r.held.volumesOf(unique) {
			if v.Driver == driver && v.Handle == handle {
				found[v.Name], known = v, true
			}
		}
		if known {
			continue
		}
		var va storagev1.VolumeAttachment
		there, err := get(ctx, r.live, attachmentName(driver, handle, node.Name), &va)
		if err != nil {
			return unresolved, err
		}
		if name := va.Spec.Source.PersistentVolumeName; !there || name == nil {
			unresolved = true
		} else if err := r.findVolume(ctx, *name, found); err != nil {
			return unresolved, err
		}
	}
	return unresolved, nil
}

// attachmentName is the name that Kubernetes gives a VolumeAttachment (v1.37: pkg/volume/csi, getAttachmentName).
func attachmentName(driver, handle, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// usesProtected reports whether a pod uses a protected volume.
func (r *FenceReader) usesProtected(pod *corev1.Pod) bool {
	return slices.ContainsFunc(reads.Claims(pod), func(claim string) bool { return len(r.held.volumesOf(claimKey(pod.Namespace, claim))) > 0 })
}

// podsOn lists the node's pods once a fence is requested, for messages.
func (r *FenceReader) podsOn(ctx context.Context, sakes *fence.Namesakes) ([]corev1.Pod, error) {
	if !slices.ContainsFunc(sakes.Records, func(r fence.Record) bool { return len(r.Spec.Fences) > 0 }) {
		return nil, nil
	}
	return reads.PodsOn(ctx, r.live, sakes.Node.Name)
}
