package beside

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// A setting of the danger zone that has nothing to do with networks.
const priorityClass = "priority-class"

// priorityClasses begin with the one that Longhorn is installed with.
var priorityClasses = []string{"longhorn-critical", "system-cluster-critical"}

// use starts a workload that is created again when it is evicted.
func (r *interleaving) use(u user) error {
	deployment := workloadOf(u.volume, u.node)
	deployment.Name = u.String()
	deployment.Spec.Selector.MatchLabels["workload"] = u.String() // the template has the same map
	r.users[u] = true
	return r.Client.Create(r.ctx, deployment)
}

func (r *interleaving) end(u user) error {
	delete(r.users, u)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: u.String()}}
	return r.Client.Delete(r.ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// endAll ends all workloads, and waits until gates are open.
func (r *interleaving) endAll() error {
	for u := range r.users {
		if err := r.end(u); err != nil {
			return err
		}
	}
	for _, volume := range r.volumes {
		if err := r.WaitVolume(r.ctx, volume, "detached"); err != nil {
			return err
		}
	}
	return nil
}

// evict has a user evict the pod of a workload, as a drain does.
func (r *interleaving) evict(u user) error {
	var pods corev1.PodList
	if err := r.Client.List(r.ctx, &pods, client.InNamespace("default"), client.MatchingLabels{"workload": u.String()}); err != nil {
		return err
	}
	for i := range pods.Items {
		err := r.Client.SubResource("eviction").Create(r.ctx, &pods.Items[i], &policyv1.Eviction{})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("evicting pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}

// trySet changes a value. To be refused with what to do first is an outcome.
func (r *interleaving) trySet(setting, value string) error {
	err := r.Set(r.ctx, setting, value)
	if err != nil && strings.Contains(err.Error(), "stop the workloads that use the volumes") {
		r.Logf("refused: %v", err)
		return nil
	}
	r.values[setting] = value
	if err == nil && setting == StorageNetworkForRWX && value == "false" {
		return r.waitServicesLeft()
	}
	return err
}

// strands tells whether a value of the RWX setting would strand a volume in use that is on
// a network: with false the CSI plugin mounts in the host's network at once.
func (r *interleaving) strands(value string) bool {
	for u := range r.users {
		if value == "false" && r.servedOn(u.volume, "") != nil {
			return true
		}
	}
	return false
}

// waitServicesLeft waits until no idle volume has a Service on a network: one that is
// attached before Fairlead has replaced its Service is stranded until it is detached.
func (r *interleaving) waitServicesLeft() error {
	return eventually.Until(r.ctx, "Services of idle volumes to leave the network", settleTimeout, func() error {
		for _, volume := range r.volumes {
			var service corev1.Service
			err := r.Client.Get(r.ctx, key(volume), &service)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil && service.Spec.ClusterIP == corev1.ClusterIPNone {
				return fmt.Errorf("service %s is headless", volume)
			}
		}
		return nil
	})
}

// crashClient force-deletes the CSI plugin's pod of a node, and waits for its successor:
// the mounts that were made in its network are dead.
func (r *interleaving) crashClient(node string) error {
	pod, err := r.PluginPod(r.ctx, node)
	if err != nil {
		return nil // it is on its way
	}
	if err := r.Client.Delete(r.ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		return err
	}
	return eventually.Until(r.ctx, "another client on "+node, settleTimeout, func() error {
		now, err := r.PluginPod(r.ctx, node)
		if err == nil && now.UID == pod.UID {
			err = errors.New("it is the one of before")
		}
		return err
	})
}

// killController ends the controller as a crash does, and starts another.
func (r *interleaving) killController() error {
	for _, replica := range r.Replicas() {
		if replica.Name == "controller-0" {
			if err := replica.Kill(); err != nil {
				return err
			}
		}
	}
	_, err := r.StartReplica(r.ctx, sandbox.ControllerDeployment, "controller-0")
	return err
}
