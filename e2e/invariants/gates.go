package invariants

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/multus"
)

// inFlight is how long before a write the facts for it may have been read.
const inFlight = 5 * time.Second

// notAuthorised: what Fairlead restarts, or has restarted by writing a template, some
// setting asks for, and the gate of that setting is open.
func notAuthorised(s *state, e event) []string {
	if !e.byFairlead() || !e.done() {
		return nil
	}
	switch o := e.after.(type) {
	case *v1alpha1.NetworkRollout:
		if before, ok := e.before.(*v1alpha1.NetworkRollout); ok && before.Status.Recorded {
			return s.clientsMove(before.Status, o.Status)
		}
	case *appsv1.DaemonSet:
		if before, ok := e.before.(*appsv1.DaemonSet); ok && o.Name == names.ClientDaemonSet {
			return s.templateChanges(before.Spec.Template, o.Spec.Template)
		}
	}
	// What Fairlead repairs is restarted for no setting: see restartedInUse.
	if pod, ok := e.before.(*corev1.Pod); ok && e.removed() && pod.Namespace == names.Namespace && !isServer(pod) {
		return s.unasked(pod)
	}
	return nil
}

// clientsMove: clients move to a network that settings name, while no RWX volume is
// attached. With the gate of nodes, each pod waits for its own node: see restartedInUse.
func (s *state) clientsMove(before, after v1alpha1.NetworkRolloutStatus) []string {
	to := after.Clients.Network
	if before.Clients.Network == to || to == "" {
		return nil // without a network, clients reach whatever servers are left
	}
	var found []string
	if want := s.wanted(); to != want && s.now.Sub(s.changed) > inFlight {
		found = append(found, fmt.Sprintf("clients are to move to %s, and the settings say %q", to, want))
	}
	if volumes := s.attachedFor(inFlight, s.shared); len(volumes) > 0 && !s.nodeGate {
		found = append(found, fmt.Sprintf("clients are to move to %s while %v are attached", to, volumes))
	}
	return found
}

// templateChanges: each trait of the CSI plugin's template has a gate of its own.
func (s *state) templateChanges(before, after corev1.PodTemplateSpec) []string {
	var found []string
	if to := common(after.Annotations); to != common(before.Annotations) {
		if rollout := s.rollout(); rollout != nil && to != rollout.Status.Clients.Network {
			found = append(found, fmt.Sprintf("the CSI plugin's template is put on %q, and the record says %q", to, rollout.Status.Clients.Network))
		}
	}
	changed := map[string]bool{
		"priority-class":                          before.Spec.PriorityClassName != after.Spec.PriorityClassName,
		"taint-toleration":                        !reflect.DeepEqual(before.Spec.Tolerations, after.Spec.Tolerations),
		"system-managed-components-node-selector": !maps.Equal(before.Spec.NodeSelector, after.Spec.NodeSelector),
	}
	for _, setting := range slices.Sorted(maps.Keys(changed)) {
		if volumes := s.attachedFor(inFlight, nil); changed[setting] && len(volumes) > 0 {
			found = append(found, fmt.Sprintf("the CSI plugin's template follows %s while %v are attached", setting, volumes))
		}
	}
	return found
}

// unasked: a restart of a pod that no setting asks for.
func (s *state) unasked(pod *corev1.Pod) []string {
	ds := get[*appsv1.DaemonSet](s, "apps/daemonsets", names.ClientDaemonSet)
	if isClient(pod) && ds != nil {
		if !slices.Equal(requests(pod.Annotations), requests(ds.Spec.Template.Annotations)) || !s.isCurrent(pod, ds) {
			return nil
		}
		return []string{"a client is restarted that is of the present template"}
	}
	for setting := range all[*v1alpha1.Setting](s) {
		if !setting.Status.Applied {
			return nil
		}
	}
	return []string{"a pod is restarted while every setting is applied"}
}

// isCurrent: the pod is built from the template, by its generation, or by its hash as far as another pod shows that.
func (s *state) isCurrent(pod *corev1.Pod, ds *appsv1.DaemonSet) bool {
	isOfGeneration := func(p *corev1.Pod) bool {
		return p.Labels["pod-template-generation"] == ds.Annotations[appsv1.DeprecatedTemplateGeneration]
	}
	hash := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	for other := range all[*corev1.Pod](s) {
		if isClient(other) && isOfGeneration(other) && other.Labels[appsv1.ControllerRevisionHashLabelKey] == hash {
			return true
		}
	}
	return isOfGeneration(pod)
}

// attachedFor are the volumes that have been attached for a while, those that keep accepts.
func (s *state) attachedFor(while time.Duration, keep func(string) bool) []string {
	var volumes []string
	for v, since := range s.attached {
		if s.now.Sub(since) > while && (keep == nil || keep(v)) {
			volumes = append(volumes, v)
		}
	}
	slices.Sort(volumes)
	return volumes
}

// Settings of Longhorn that choose the networks; the last has replaced the second in 1.11.
const (
	storageNetwork        = "storage-network"
	storageNetworkForRWX  = "storage-network-for-rwx-volume-enabled"
	endpointNetworkForRWX = "endpoint-network-for-rwx-volume"
)

// wanted is the network for RWX volumes that the settings name; "" is the cluster network.
func (s *state) wanted() string {
	if value, _ := s.value(endpointNetworkForRWX); value != "" {
		return onNetwork(value, names.EndpointInterface)
	}
	if enabled, _ := s.value(storageNetworkForRWX); enabled != "true" {
		return ""
	}
	return s.storageNetwork()
}

func (s *state) storageNetwork() string {
	value, _ := s.value(storageNetwork)
	return onNetwork(value, names.StorageInterface)
}

// onNetwork is the attachment to the network that a value names, as annotations ask for it; "" is none.
func onNetwork(value, networkInterface string) string {
	network, err := multus.ParseNetwork(value)
	if err != nil || network.IsZero() {
		return ""
	}
	return multus.Attachment{Network: network, Interface: networkInterface}.String()
}
