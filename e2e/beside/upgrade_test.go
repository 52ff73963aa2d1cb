package beside

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	versions "github.com/fairlead-io/fairlead/e2e/longhorn"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// TestLonghornIsUpgradedUnderVolumes upgrades Longhorn twice while volumes on the RWX network are in use and a change
// waits for them. With Fairlead, no workload is restarted that Longhorn alone does not restart, no instance
// manager in use ends, and what waits goes on waiting. Clusters of its own take two minutes each, the upgrades as long.
func TestLonghornIsUpgradedUnderVolumes(t *testing.T) {
	if v, err := versions.Wanted(); err != nil || v.Name != versions.Default.Name {
		t.Skipf("the upgrade begins with Longhorn %s", versions.Default.Name)
	}
	restartedAlone := map[string]bool{}
	for _, fairlead := range []bool{false, true} {
		t.Run(map[bool]string{false: "Longhorn alone", true: "with Fairlead"}[fairlead], func(t *testing.T) {
			endCluster(t)
			s := prepare(t, fairlead)
			t.Cleanup(func() { endCluster(t) })
			u := &upgrading{scene: s}
			u.start()
			for _, to := range versions.Upgrades {
				for name := range u.upgrade(to) {
					what := fmt.Sprintf("%s at the upgrade to %s", name, to)
					if !fairlead {
						restartedAlone[what] = true
					} else if !restartedAlone[what] {
						t.Errorf("workload %s was restarted; with Longhorn alone it was not", what)
					}
				}
			}
			t.Logf("restarted with Longhorn alone: %v", slices.Sorted(maps.Keys(restartedAlone)))
		})
	}
}

// endCluster ends the cluster that tests share, so that the next one begins with another.
func endCluster(t *testing.T) {
	t.Helper()
	if one.cluster == nil {
		return
	}
	if err := one.cluster.Stop(); err != nil {
		t.Error(err)
	}
	one.cluster, one.installed = nil, false
}

// upgrading is a cluster with volumes in use during upgrades.
type upgrading struct {
	scene
	// used are the instance managers in use, by name, and pods the workloads' pods, by workload.
	used map[string]string
	pods map[string]string
}

var upgraded = map[string]string{"pvc-own": "rwo", "pvc-shared": "rwx"}

func (u *upgrading) start() {
	u.Helper()
	u.set(StorageNetwork, NetworkA)
	u.set(StorageNetworkForRWX, "true")
	u.must(u.waitNetworks(u.On(NetworkA), OnStorage(NetworkA), one.installed))
	for name, mode := range upgraded {
		u.must(u.CreateVolume(u.ctx, name, mode))
		u.must(u.Client.Create(u.ctx, workloadOf(name, u.Manager.pod.Spec.NodeName)))
		u.must(u.WaitVolume(u.ctx, name, "attached"))
	}
	u.expectMountable("pvc-shared")
	u.pods = u.workloads()
	u.used = u.instanceManagers()
	// Longhorn's start takes back a value that differs from ConfigMap longhorn-default-setting, as priority-class would.
	u.set(tolerations, u.Version.Zone[tolerations][1])
	u.must(u.WaitApplied(u.ctx, tolerations, false, settleTimeout))
}

// upgrade returns the workloads that were restarted.
func (u *upgrading) upgrade(to string) map[string]bool {
	u.Helper()
	u.must(u.Cluster.Upgrade(u.ctx, to))
	u.expectMountable("pvc-shared")
	if one.installed {
		u.wantWaiting()
	}
	now := u.workloads()
	restarted := map[string]bool{}
	for name, uid := range u.pods {
		if now[name] != uid {
			restarted[name] = true
		}
	}
	u.pods = now
	return restarted
}

// wantWaiting: the change still waits, and no instance manager in use was restarted.
func (u *upgrading) wantWaiting() {
	u.Helper()
	if applied, err := u.Applied(u.ctx, tolerations); err != nil || applied {
		u.Errorf("after the upgrade to %s, %s is applied: %t (%v), while volumes are attached", u.Version.Name, tolerations, applied, err)
	}
	now := u.instanceManagers()
	for name, uid := range u.used {
		if now[name] != uid {
			u.Errorf("instance manager %s, which was in use, was restarted at the upgrade to %s", name, u.Version.Name)
		}
	}
}

// instanceManagers are the UIDs of the instance managers' pods, by name.
func (u *upgrading) instanceManagers() map[string]string {
	u.Helper()
	pods, err := u.Pods(u.ctx, "longhorn.io/component", "instance-manager")
	u.must(err)
	uids := map[string]string{}
	for _, pod := range pods {
		uids[pod.Name] = string(pod.UID)
	}
	return uids
}

// workloads are the UIDs of the running pods, by workload.
func (u *upgrading) workloads() map[string]string {
	u.Helper()
	uids := map[string]string{}
	u.must(eventually.Until(u.ctx, "the workloads to run", attachTimeout, func() error {
		var pods corev1.PodList
		if err := u.Client.List(u.ctx, &pods, client.InNamespace("default")); err != nil {
			return err
		}
		clear(uids)
		for i := range pods.Items {
			pod := &pods.Items[i]
			if !sandbox.IsReady(pod) || pod.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s is not ready", pod.Name)
			}
			uids[pod.Labels["workload"]] = string(pod.UID)
		}
		if len(uids) != len(upgraded) {
			return fmt.Errorf("%d workloads run", len(uids))
		}
		return nil
	}))
	return uids
}

func workloadOf(volume, node string) *appsv1.Deployment {
	labels := map[string]string{"workload": volume}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: volume},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](0),
					Containers: []corev1.Container{{Name: "main", Image: "nginx", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
					Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volume},
					}}},
				},
			},
		},
	}
}
