package reads

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Bucket is the key of a volume in an index. Several volumes share a key, about six at 100,000 volumes, since an index takes
// some 400 bytes for each key. The reader filters.
func Bucket(key string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key))
	return strconv.FormatUint(uint64(hash.Sum32()%(1<<14)), 16)
}

const claimField = "spec.claimRef"

// IndexClaims adds to a cache the index that VolumesOfClaim needs.
func IndexClaims(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.PersistentVolume{}, claimField, func(o client.Object) []string {
		pv, ok := o.(*corev1.PersistentVolume)
		if !ok || pv.Spec.ClaimRef == nil {
			return nil
		}
		return []string{Bucket(pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name)}
	})
	if err != nil {
		return fmt.Errorf("indexing PersistentVolumes by claim: %w", err)
	}
	return nil
}

// VolumesOfClaim lists the CSI volumes that are bound to a claim; they are read-only. A Released volume still names its
// deleted claim, and a new claim may have that name.
func VolumesOfClaim(ctx context.Context, from client.Reader, namespace, claim string) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	if err := from.List(ctx, &list, client.MatchingFields{claimField: Bucket(namespace + "/" + claim)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("looking for the volume of claim %s/%s: %w", namespace, claim, err)
	}
	return slices.DeleteFunc(list.Items, func(pv corev1.PersistentVolume) bool {
		ref := pv.Spec.ClaimRef
		return ref == nil || ref.Namespace != namespace || ref.Name != claim || pv.Spec.CSI == nil || pv.Status.Phase != corev1.VolumeBound
	}), nil
}

// NodeField selects the pods of a node, in the API server and in the controller's cache.
const NodeField = "spec.nodeName"

// IndexNodes adds to a cache the index by NodeField.
func IndexNodes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Pod{}, NodeField, func(o client.Object) []string {
		pod, ok := o.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" {
			return nil
		}
		return []string{pod.Spec.NodeName}
	})
	if err != nil {
		return fmt.Errorf("indexing pods by node: %w", err)
	}
	return nil
}

// PodsOn lists the pods of a node, in all namespaces, from the API server. Pods
// are needed only briefly after a client restarted, so a cache of all pods, which
// grows with the cluster, is not worth its memory.
func PodsOn(ctx context.Context, live client.Reader, node string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := live.List(ctx, &list, client.MatchingFields{NodeField: node}); err != nil {
		return nil, fmt.Errorf("listing the pods on %s: %w", node, err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return Ended(&pod) }), nil
}

// NodesOfWorkloads are the nodes of the pods that use shared volumes, by namespace/name. Namespaces that may not be read are left out.
func (r *Reader) NodesOfWorkloads(ctx context.Context, volumes []rwx.Volume) map[string]string {
	nodes, read := map[string]string{}, map[string]bool{}
	for _, v := range volumes {
		for _, workload := range v.Workloads {
			namespace, _, _ := strings.Cut(workload, "/")
			if !v.Shared || !v.Attached || read[namespace] {
				continue
			}
			read[namespace] = true
			_ = lists.ForEach(ctx, r.objects, &corev1.PodList{}, func(pod *corev1.Pod) {
				nodes[pod.Namespace+"/"+pod.Name] = pod.Spec.NodeName
			}, client.InNamespace(namespace))
		}
	}
	return nodes
}

// Workload gathers the facts on a pod that may use volumes of Longhorn.
// applied is the network that clients are on. The reader's provisioned needs the index of IndexClaims.
func (r *Reader) Workload(ctx context.Context, pod *corev1.Pod, applied multus.Attachment) (rwx.Workload, error) {
	w := rwx.Workload{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID),
		OptOut:      pod.Annotations[rwx.OptOutAnnotation] == "true",
		Terminating: pod.DeletionTimestamp != nil,
		Created:     pod.CreationTimestamp.Time,
		Owner:       controllerOf(pod),
		Mounted:     mounted(pod), Started: started(pod), Restarted: restarted(pod), Starts: starts(pod),
	}
	if at := pod.Status.StartTime; at != nil {
		w.Began = at.Time
	}
	for _, claim := range Claims(pod) {
		m, err := r.mount(ctx, pod, claim, applied)
		if err != nil {
			return w, err
		}
		w.Mounts = append(w.Mounts, m)
	}
	return w, nil
}

// Claims returns the names of the PersistentVolumeClaims that the pod uses. The claim
// of a generic ephemeral volume is named after the pod and the volume.
func Claims(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}

// mount returns the volume of a claim, named by its CSI volume handle. The handle equals
// the PersistentVolume's name only if the volume was provisioned for the claim.
func (r *Reader) mount(ctx context.Context, pod *corev1.Pod, claim string, applied multus.Attachment) (rwx.Mount, error) {
	volumes, err := VolumesOfClaim(ctx, r.provisioned, pod.Namespace, claim)
	if err != nil || len(volumes) == 0 {
		return rwx.Mount{}, err
	}
	pv := slimVolume(&volumes[0])
	m := rwx.Mount{Volume: pv.handle, Driver: volumes[0].Spec.CSI.Driver, Shared: pv.shared, Migratable: pv.migratable}
	if m.Driver != r.names.Driver {
		return m, nil
	}
	if err := r.storageSide(ctx, &m); err != nil {
		return m, err
	}
	service, err := r.Service(ctx, m.Volume)
	if err != nil {
		return m, err
	}
	if service != nil {
		m.Network = service.Network(applied)
		m.ServerMove, err = r.serverMove(ctx, r.objects, m.Volume, pod)
	}
	return m, err
}

// storageSide adds fields of the storage system's own volume, which are also
// correct if the PersistentVolume was created manually.
func (r *Reader) storageSide(ctx context.Context, m *rwx.Mount) error {
	var v longhorn.Volume
	err := r.objects.Get(ctx, client.ObjectKey{Namespace: r.names.Namespace, Name: m.Volume}, &v)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading volume %s: %w", m.Volume, err)
	}
	m.Migratable, m.Shared = v.Spec.Migratable, v.Spec.Shared()
	if at, err := time.Parse(time.RFC3339, v.Status.RemountRequestedAt); err == nil {
		m.RemountRequested = at
	}
	return nil
}

// mounted returns an upper bound of the time at which the pod's volumes were mounted. A kubelet
// mounts all volumes, then creates the sandbox, then starts containers; the earliest known
// time is the closest bound.
//
// After a reboot the kubelet mounts the volumes again and creates another sandbox. So neither
// ended containers nor a pod without a sandbox say anything about the current mounts.
func mounted(pod *corev1.Pod) time.Time {
	var at time.Time
	if c := condition(pod, corev1.PodReadyToStartContainers); c != nil {
		if c.Status != corev1.ConditionTrue {
			return time.Time{}
		}
		at = c.LastTransitionTime.Time
	}
	for _, c := range containers(pod) {
		if running := c.State.Running; running != nil {
			at = earliest(at, running.StartedAt.Time)
		}
	}
	return at
}

func started(pod *corev1.Pod) bool {
	c := condition(pod, corev1.PodReadyToStartContainers)
	return c != nil && c.Status == corev1.ConditionTrue || slices.ContainsFunc(containers(pod), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

func restarted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(containers(pod), func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 })
}

// starts are the starts of the pod's containers, of this run and the last. If a container has restarted more often, its first
// start is not known: the start of the pod stands for it.
func starts(pod *corev1.Pod) []time.Time {
	var times []time.Time
	if at := pod.Status.StartTime; at != nil && slices.ContainsFunc(containers(pod), func(c corev1.ContainerStatus) bool { return c.RestartCount > 1 }) {
		times = append(times, at.Time)
	}
	for _, c := range containers(pod) {
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if state.Running != nil {
				times = append(times, state.Running.StartedAt.Time)
			}
			if state.Terminated != nil {
				times = append(times, state.Terminated.StartedAt.Time)
			}
		}
	}
	return times
}

func containers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}
