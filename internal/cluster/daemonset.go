package cluster

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// daemonSetFacts are the facts on the clients' DaemonSet; ds is nil if there is none.
func (r *Reader) daemonSetFacts(ds *appsv1.DaemonSet) rollout.DaemonSet {
	facts := rollout.DaemonSet{Name: r.profile.ClientDaemonSet}
	if ds == nil {
		return facts
	}
	template := ds.Spec.Template
	networks, err := storage.ManagedAttachments(template.Annotations[storage.NetworksAnnotation], ds.Namespace, r.profile.Interfaces())
	facts.Found, facts.Networks, facts.Unreadable = true, networks, err != nil
	if len(networks) > 0 {
		facts.Network = networks[0]
	}
	if facts.VolumeNetworks, err = storage.VolumeAttachments(template.Annotations[storage.NetworksAnnotation], ds.Namespace); err != nil {
		facts.Unreadable = true
	}
	facts.HostNetwork = template.Spec.HostNetwork
	facts.OptOut = template.Annotations[storage.OptOutAnnotation] == "true"
	facts.Paused = paused(ds)
	facts.Observed = ds.Status.ObservedGeneration >= ds.Generation
	facts.Revision = ds.Annotations[appsv1.DeprecatedTemplateGeneration]
	facts.Wanted = int(ds.Status.DesiredNumberScheduled)
	facts.MaxUnavailable = maxUnavailable(ds)
	return facts
}

// OwnStrategy returns the installer's update strategy, also while the DaemonSet is paused.
func OwnStrategy(ds *appsv1.DaemonSet) appsv1.DaemonSetUpdateStrategy {
	var strategy appsv1.DaemonSetUpdateStrategy
	if paused(ds) && json.Unmarshal([]byte(ds.Annotations[storage.StrategyAnnotation]), &strategy) == nil {
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
	ds.Annotations[storage.StrategyAnnotation] = string(strategy)
	ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	return nil
}

// paused also checks the strategy: an installer that overwrites the strategy
// leaves the annotation behind.
func paused(ds *appsv1.DaemonSet) bool {
	_, kept := ds.Annotations[storage.StrategyAnnotation]
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
