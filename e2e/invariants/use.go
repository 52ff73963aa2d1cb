package invariants

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// restartedInUse: no setting restarts what an attached volume needs, whoever deletes
// it. Users may, and so may kubelets, which end what others have deleted; what an
// upgrade deletes with its owner is no setting's.
func restartedInUse(s *state, e event) []string {
	if !e.removed() || e.byUser() || e.Writer() == "kwok" {
		return nil
	}
	switch o := e.before.(type) {
	case *corev1.Pod:
		return s.podInUse(o, e)
	case *corev1.Service:
		if v := o.Labels[names.VolumeLabel]; o.Namespace == names.Namespace && s.inUse(v) && s.served(v) && !s.repairs(e, v) {
			return []string{fmt.Sprintf("the Service of attached volume %s is deleted", v)}
		}
	}
	return nil
}

func (s *state) podInUse(pod *corev1.Pod, e event) []string {
	var users []string
	collected := e.Writer() == "generic-garbage-collector"
	switch {
	case isInstanceManager(pod):
		users = s.runsIn(pod.Name)
	case isServer(pod) && sandbox.IsReady(pod) && s.now.Sub(pod.CreationTimestamp.Time) > inFlight: // Longhorn replaces a server that does not start
		if v := pod.Labels[names.VolumeLabel]; s.inUse(v) && !s.repairs(e, v) {
			users = []string{v}
		}
	case isClient(pod) && !collected:
		for v := range s.attached {
			if s.inUse(v) && s.shared(v) && slices.Contains(s.nodesOf(v), pod.Spec.NodeName) {
				users = append(users, v)
			}
		}
	}
	if len(users) == 0 {
		return nil
	}
	slices.Sort(users)
	return []string{fmt.Sprintf("pod %s is deleted under %v", pod.Name, users)}
}

// inUse: attached by Kubernetes and by Longhorn, for so long that all components know.
func (s *state) inUse(volume string) bool {
	since, attached := s.attached[volume]
	return attached && s.now.Sub(since) > inFlight
}

// repairs: Fairlead replaces what serves a volume that no workload has mounted yet. The
// claims of volumes have the names of their volumes here.
func (s *state) repairs(e event, volume string) bool {
	if !e.byFairlead() {
		return false
	}
	for pod := range all[*corev1.Pod](s) {
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == volume && pod.Status.Phase == corev1.PodRunning {
				return false
			}
		}
	}
	return true
}

// served: a server runs, and Longhorn has published its address.
func (s *state) served(volume string) bool {
	sm := get[*longhorn.ShareManager](s, "longhorn.io/sharemanagers", volume)
	return sm != nil && sm.Status.State == "running"
}

// runsIn are the volumes whose engine or replica runs in an instance manager, and is to.
func (s *state) runsIn(manager string) []string {
	var volumes []string
	add := func(spec longhorn.InstanceSpec, status longhorn.InstanceStatus) {
		running := spec.DesireState == longhorn.InstanceRunning && status.CurrentState == longhorn.InstanceRunning
		if running && status.InstanceManagerName == manager && s.inUse(spec.VolumeName) {
			volumes = append(volumes, spec.VolumeName)
		}
	}
	for o := range all[*longhorn.Engine](s) {
		add(o.Spec, o.Status)
	}
	for o := range all[*longhorn.Replica](s) {
		add(o.Spec, o.Status)
	}
	slices.Sort(volumes)
	return slices.Compact(volumes)
}
