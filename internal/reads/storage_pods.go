package reads

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// storagePods are Longhorn's DaemonSets and running pods, each list read once.
type storagePods struct {
	classes    podClasses
	daemonSets []appsv1.DaemonSet
	clients    []rwx.Client
	servers    []rwx.Server
	// shareManagers are the servers as components; each uses its volume.
	shareManagers []catalog.Component
	// instanceManagers and backingImageManagers are whole pods: their build depends on objects of the storage system.
	instanceManagers, backingImageManagers []corev1.Pod
	// daemonPods by the UID of their DaemonSet.
	daemonPods map[types.UID][]daemonPod
}

// daemonPod is a pod of a DaemonSet.
type daemonPod struct {
	node               string
	generation, hash   string // labels of the template that it is built from
	ready, terminating bool
	created            time.Time
}

// templateHash is the hash of the DaemonSet's template; "" if no pod shows it. Of a template that is changed back the hash is the
// former one and the generation is new, and the DaemonSet controller restarts no pod for it (kubernetes v1.37.2,
// pkg/controller/daemon/util, IsPodUpdated). So pods are compared by hash.
//
// Of a DaemonSet that was deleted and recreated while its pods stayed, an old pod may have the generation and another hash. The newest pod
// is the new DaemonSet's, unless that counts none of its own yet.
func templateHash(ds *appsv1.DaemonSet, pods []daemonPod) string {
	hashes := map[string]bool{}
	var newest *daemonPod
	for i, pod := range pods {
		if pod.generation == ds.Annotations[appsv1.DeprecatedTemplateGeneration] && (newest == nil || pod.created.After(newest.created)) {
			newest = &pods[i]
		}
		hashes[pod.hash] = true
	}
	s := ds.Status // it does not count misscheduled pods, which a rolling update deletes all the same
	countsNone := s.ObservedGeneration >= ds.Generation && s.UpdatedNumberScheduled == 0 && s.CurrentNumberScheduled == int32(len(pods)) && s.NumberMisscheduled == 0
	if newest != nil && !countsNone {
		return newest.hash
	}
	allUpdated := s.ObservedGeneration >= ds.Generation && s.DesiredNumberScheduled > 0 && s.UpdatedNumberScheduled == s.DesiredNumberScheduled && s.NumberMisscheduled == 0
	if len(hashes) == 1 && allUpdated {
		return pods[0].hash
	}
	return ""
}

// storagePods reads DaemonSets and pods page by page: there may be as many pods as volumes.
func (r *Reader) storagePods(ctx context.Context, classes podClasses) (storagePods, error) {
	pods := storagePods{classes: classes, daemonPods: map[types.UID][]daemonPod{}}
	here := client.InNamespace(r.names.Namespace)
	var daemonSets appsv1.DaemonSetList
	if err := r.objects.List(ctx, &daemonSets, here, client.UnsafeDisableDeepCopy); err != nil {
		return pods, fmt.Errorf("listing DaemonSets: %w", err)
	}
	pods.daemonSets = daemonSets.Items
	err := lists.ForEach(ctx, r.objects, &corev1.PodList{}, func(pod *corev1.Pod) {
		if !Ended(pod) {
			r.addPod(&pods, pod)
		}
	}, here)
	if err != nil {
		return pods, fmt.Errorf("listing pods: %w", err)
	}
	return pods, nil
}

func (r *Reader) addPod(pods *storagePods, pod *corev1.Pod) {
	is := func(role map[string]string) bool { return labels.SelectorFromSet(role).Matches(labels.Set(pod.Labels)) }
	owner := controllerOf(pod)
	if owner.Kind == "DaemonSet" {
		uid := types.UID(owner.UID)
		pods.daemonPods[uid] = append(pods.daemonPods[uid], daemonPod{pod.Spec.NodeName, pod.Labels[templateGenerationLabel], pod.Labels[appsv1.ControllerRevisionHashLabelKey], Ready(pod), pod.DeletionTimestamp != nil, pod.CreationTimestamp.Time})
	}
	switch {
	case is(r.names.ClientLabels) && r.names.OwnsClient(owner):
		pods.clients = append(pods.clients, r.clientOf(pod))
	case is(r.names.ServerLabels) && r.names.OwnsServer(owner, pod.Labels[r.names.VolumeLabel]):
		pods.servers = append(pods.servers, r.serverOf(pod))
		pods.shareManagers = append(pods.shareManagers, r.shareManager(pod, pods.classes))
	case is(r.names.InstanceManagerLabels):
		pods.instanceManagers = append(pods.instanceManagers, *pod)
	case is(r.names.BackingImageManagerLabels):
		pods.backingImageManagers = append(pods.backingImageManagers, *pod)
	}
}

// shareManager has a pod while its volume is attached. Its network is not a trait: see rollout.Next.
func (r *Reader) shareManager(pod *corev1.Pod, classes podClasses) catalog.Component {
	c := r.podComponent(catalog.ShareManager, pod, classes)
	delete(c.Built, catalog.NodeSelector) // a StorageClass may add to it (shareManagerNodeSelector)
	c.Uses = []string{pod.Labels[r.names.VolumeLabel]}
	return c
}

// withoutLostNodes counts a DaemonSet that is not Ready again, without its pods on nodes
// that are down. Such pods return with their nodes, and would delay a setting until then.
// The DaemonSet controller does not count pods that do not tolerate the nodes' taints: they
// are misscheduled (k8s.io/kubernetes pkg/controller/daemon NodeShouldRunDaemonPod).
//
// A pod without a node counts, although it may be waiting for a node that is down.
func withoutLostNodes(ds *appsv1.DaemonSet, pods []daemonPod, nodes catalog.Nodes, c *catalog.Component) {
	if ds.Status.ObservedGeneration < ds.Generation || ds.Status.NumberMisscheduled > 0 {
		return
	}
	hash := templateHash(ds, pods)
	lost, updated, waited := map[string]bool{}, map[string]bool{}, false
	for _, pod := range pods {
		switch there, known := nodes[pod.node]; {
		case pod.node != "" && !known: // the node is gone, and the DaemonSet does not count it
		case known && !there.Ready:
			lost[pod.node] = true
		case !pod.terminating && pod.ready && hash != "" && pod.hash == hash:
			updated[pod.node] = true
		default:
			waited = true
		}
	}
	if len(lost) == 0 {
		return
	}
	c.Total = max(0, c.Total-len(lost))
	c.Updated = min(len(updated), c.Total)
	c.Ready = !waited && len(updated) >= c.Total
}

// markLost marks the clients that are down on nodes that are not Ready.
func markLost(clients []rwx.Client, nodes catalog.Nodes) {
	for i, c := range clients {
		clients[i].Lost = (!c.Ready || c.Terminating) && c.Node != "" && !nodes[c.Node].Ready
	}
}

// daemonSetFacts are the facts on the clients' DaemonSet, which may not exist.
func (r *Reader) daemonSetFacts(all []appsv1.DaemonSet, pods map[types.UID][]daemonPod) rollout.DaemonSet {
	facts := rollout.DaemonSet{Name: r.names.ClientDaemonSet}
	i := slices.IndexFunc(all, func(ds appsv1.DaemonSet) bool { return ds.Name == facts.Name })
	if i < 0 {
		return facts
	}
	ds := &all[i]
	template := ds.Spec.Template
	networks, err := multus.ManagedAttachments(template.Annotations[multus.NetworksAnnotation], ds.Namespace, r.names.Interfaces())
	facts.Found, facts.Networks, facts.Unreadable = true, networks, err != nil
	if len(networks) > 0 {
		facts.Network = networks[0]
	}
	if facts.VolumeNetworks, err = multus.VolumeAttachments(template.Annotations[multus.NetworksAnnotation], ds.Namespace); err != nil {
		facts.Unreadable = true
	}
	facts.HostNetwork = template.Spec.HostNetwork
	facts.OptOut = template.Annotations[rwx.OptOutAnnotation] == "true"
	facts.Paused, facts.Version = paused(ds), ds.ResourceVersion
	facts.Observed = ds.Status.ObservedGeneration >= ds.Generation
	facts.Revision = templateHash(ds, pods[ds.UID])
	facts.Wanted = int(ds.Status.DesiredNumberScheduled)
	facts.MaxUnavailable = maxUnavailable(ds)
	return facts
}

// OwnStrategy returns the installer's update strategy, also while the DaemonSet is paused.
func OwnStrategy(ds *appsv1.DaemonSet) appsv1.DaemonSetUpdateStrategy {
	var strategy appsv1.DaemonSetUpdateStrategy
	if paused(ds) && json.Unmarshal([]byte(ds.Annotations[rwx.StrategyAnnotation]), &strategy) == nil {
		return strategy
	}
	return ds.Spec.UpdateStrategy
}

// Pause disables the DaemonSet controller's rolling update, which would restart
// pods regardless of the volumes attached on their nodes.
func Pause(ds *appsv1.DaemonSet) error {
	strategy, err := json.Marshal(OwnStrategy(ds))
	if err != nil {
		return fmt.Errorf("keeping the update strategy: %w", err)
	}
	if ds.Annotations == nil {
		ds.Annotations = map[string]string{}
	}
	ds.Annotations[rwx.StrategyAnnotation] = string(strategy)
	ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	return nil
}

// paused also checks the strategy: an installer that overwrites the strategy
// leaves the annotation behind.
func paused(ds *appsv1.DaemonSet) bool {
	_, kept := ds.Annotations[rwx.StrategyAnnotation]
	return kept && ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
}

// maxUnavailable is how many client pods may be down at a time; Kubernetes' default is 1.
func maxUnavailable(ds *appsv1.DaemonSet) int {
	rolling := OwnStrategy(ds).RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(ds.Status.DesiredNumberScheduled), true)
	if err != nil {
		return 1
	}
	return max(1, n)
}
