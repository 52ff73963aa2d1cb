package e2e

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestWorkloads ends the CSI plugin pod of a node in every way. Each workload with a dead mount is restarted once,
// and no other workload.
func TestWorkloads(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1})
	lh := c.Longhorn()
	c.set(own, string(catalog.EndpointNetworkForRWX), netA)
	c.waitApplied(netA + "@lhnet2")
	for _, v := range []standin.Volume{
		{Name: "pvc-shared", Shared: true, Claim: "shared"},
		{Name: "pvc-other", Shared: true, Claim: "other"},
		{Name: "pvc-own", Claim: "own"},
		{Name: "pvc-migratable", Shared: true, Migratable: true, Claim: "migratable"},
		{Name: "handle-of-static", Shared: true, Claim: "static", PersistentVolume: "pv-by-hand"},
	} {
		c.must(lh.CreateVolume(t.Context(), v))
		c.must(lh.Attach(t.Context(), v.Name, "node-1"))
	}
	lone := workloadPod("lone", nil, "shared")
	away := workloadPod("away", map[string]string{rwx.OptOutAnnotation: "true"}, "shared")
	away.OwnerReferences = []metav1.OwnerReference{c.idleOwner()}
	c.must(c.create(lone))
	c.must(c.create(away))
	for name, claims := range map[string][]string{
		"one": {"shared"}, "two": {"shared", "other"}, "static": {"static"}, // an RWX volume each, at least
		"own": {"own"}, "migratable": {"migratable"}, "none": nil,
	} {
		c.must(c.create(statefulSet(name, claims...)))
	}
	affected, spared := []string{"one-0", "two-0", "static-0"}, []string{"own-0", "migratable-0", "none-0", "lone", "away"}
	c.waitRunning(append(append([]string{}, affected...), spared...)...)
	c.notRestarted(c.uids(append(affected, spared...)...), 2*time.Second)

	for _, way := range []struct {
		name string
		do   func(c *cluster, pod *corev1.Pod)
	}{
		{"deleted", func(c *cluster, pod *corev1.Pod) { c.delete(pod) }},
		{"force-deleted", func(c *cluster, pod *corev1.Pod) { c.delete(pod, client.GracePeriodSeconds(0)) }},
		{"crashed", func(c *cluster, pod *corev1.Pod) {
			c.kubectl("-n", namespace, "patch", "pod", pod.Name, "--subresource=status", "-p", `{"status":{"phase":"Failed"}}`)
		}},
		{"given a new sandbox", func(c *cluster, pod *corev1.Pod) {
			c.must(c.RestartSandbox(t.Context(), client.ObjectKeyFromObject(pod)))
		}},
	} {
		c.run("client is "+way.name, func(t *testing.T, c *cluster) {
			c.nextSecond()
			before, alive := c.uids(affected...), c.uids(spared...)
			way.do(c, c.clientOn("node-1"))
			c.waitReplaced(before)
			c.waitRunning(affected...)
			c.notRestarted(c.uids(affected...), 3*time.Second) // only once
			c.notRestarted(alive, 0)
		})
	}

	c.waitHas("events", 10*time.Second, func() string { return c.events("default") },
		"Pod lone DeadMount volume pvc-shared was mounted before", "Pod away DeadMount volume pvc-shared was mounted before",
		"StatefulSet one Remount restarted pod one-0 on node-1: volume pvc-shared was mounted before",
		"StatefulSet two Remount restarted pod two-0 on node-1: volume pvc-other, pvc-shared was mounted before",
		"the pod has no controller that would recreate it", "annotation fairlead.io/opt-out keeps Fairlead off")

	c.run("restarts wait while the setting is off", func(t *testing.T, c *cluster) {
		c.set(system, string(catalog.AutoDeletePod), "false")
		c.nextSecond()
		before := c.uids(affected...)
		c.delete(c.clientOn("node-1"), client.GracePeriodSeconds(0))
		c.notRestarted(before, 3*time.Second)
		c.set(system, string(catalog.AutoDeletePod), "true")
		c.waitReplaced(before)
		c.waitRunning(affected...)
	})

	newBudget := func(name, app string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		}
	}
	c.run("disruption budgets delay only their pods", func(t *testing.T, c *cluster) {
		budget := newBudget("one", "one")
		c.must(c.create(budget))
		c.waitIs("observed budget", 10*time.Second, true, func() any {
			c.must(c.Client.Get(t.Context(), client.ObjectKeyFromObject(budget), budget))
			return budget.Status.ObservedGeneration > 0
		})
		c.nextSecond()
		kept, others := c.uids("one-0"), c.uids("two-0", "static-0")
		c.delete(c.clientOn("node-1"), client.GracePeriodSeconds(0))
		c.waitReplaced(others)
		c.notRestarted(kept, 2*time.Second)
		c.delete(budget)
		c.waitReplaced(kept)
		c.waitRunning(affected...)
	})

	c.run("a refused eviction is reported and delays no other", func(t *testing.T, c *cluster) {
		budgets := []*policyv1.PodDisruptionBudget{newBudget("two-a", "two"), newBudget("two-b", "two")}
		for _, budget := range budgets {
			c.must(c.create(budget))
		}
		c.nextSecond()
		kept, others := c.uids("two-0"), c.uids("one-0", "static-0")
		c.delete(c.clientOn("node-1"), client.GracePeriodSeconds(0))
		c.waitReplaced(others)
		c.waitHas("events", 10*time.Second, func() string { return c.events("default") },
			"Pod two-0 DeadMount volume pvc-other, pvc-shared was mounted before", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
		c.notRestarted(kept, 0)
		c.delete(budgets[0])
		c.delete(budgets[1])
		c.waitReplaced(kept)
		c.waitRunning(affected...)
	})

	c.run("its server moves to another address", func(t *testing.T, c *cluster) {
		before, alive := c.uids("one-0", "two-0"), c.uids("static-0", "own-0", "migratable-0", "none-0", "lone", "away")
		c.kubectl("-n", namespace, "annotate", "pod", "share-manager-pvc-shared", "--overwrite", multus.NetworkStatusAnnotation+"=[]") // the simulated Multus attaches it again
		c.waitReplaced(before)
		c.waitRunning(affected...)
		c.notRestarted(c.uids(affected...), 3*time.Second) // only once
		c.notRestarted(alive, 0)
	})

	c.run("a restarted controller restarts no workload", func(t *testing.T, c *cluster) {
		before := c.uids(append(affected, spared...)...)
		replicas := c.Replicas()
		c.must(replicas[len(replicas)-1].Kill())
		_, err := c.StartReplica(t.Context(), sandbox.ControllerDeployment, "controller-again")
		c.must(err)
		c.notRestarted(before, 18*time.Second) // longer than the 8 s lease of the killed controller
	})
}

// nextSecond waits for the next second: times in the API have no fractions.
func (c *cluster) nextSecond() { time.Sleep(1500 * time.Millisecond) }

// idleOwner is a controller that does nothing. On Kubernetes 1.31 a StatefulSet would release the pod:
// it compares the UID of the owner alone.
func (c *cluster) idleOwner() metav1.OwnerReference {
	c.t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "idle-owner"}}
	c.must(c.create(owner))
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}
}

func workloadPod(name string, annotations map[string]string, claims ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations}, Spec: podSpec(claims...)}
}

func statefulSet(name string, claims ...string) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](1), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(claims...)},
		},
	}
}

// podSpec is of a pod on node-1 that uses the claims.
func podSpec(claims ...string) corev1.PodSpec {
	spec := corev1.PodSpec{
		NodeSelector:                  map[string]string{corev1.LabelHostname: "node-1"},
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		InitContainers:                []corev1.Container{{Name: "prepare", Image: "busybox"}},
		Containers:                    []corev1.Container{{Name: "main", Image: "nginx"}},
	}
	for i, claim := range claims {
		name := fmt.Sprintf("data-%d", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	return spec
}

func (c *cluster) clientOn(node string) *corev1.Pod {
	c.t.Helper()
	for _, pod := range c.clients() {
		if pod.Spec.NodeName == node && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			return &pod
		}
	}
	c.t.Fatalf("no CSI plugin pod on %s", node)
	return nil
}

// workload reads a pod of the default namespace.
func (c *cluster) workload(name string) (pod corev1.Pod, err error) {
	return pod, c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &pod)
}

func (c *cluster) waitRunning(names ...string) {
	c.t.Helper()
	c.eventually("workloads run", 30*time.Second, func() error {
		for _, name := range names {
			if pod, err := c.workload(name); err != nil || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s is %s: %w", name, pod.Status.Phase, err)
			}
		}
		return nil
	})
}

// uids of pods by name.
func (c *cluster) uids(names ...string) map[string]string {
	c.t.Helper()
	uids := map[string]string{}
	for _, name := range names {
		pod, err := c.workload(name)
		c.must(err)
		uids[name] = string(pod.UID)
	}
	return uids
}

// waitReplaced waits until each pod is another one.
func (c *cluster) waitReplaced(before map[string]string) {
	c.t.Helper()
	c.eventually("workloads are restarted", 30*time.Second, func() error {
		for name, uid := range before {
			if pod, err := c.workload(name); err != nil || string(pod.UID) == uid {
				return fmt.Errorf("pod %s is the same: %w", name, err)
			}
		}
		return nil
	})
}

// notRestarted wants the same pods after that long. Nothing announces that no restart follows.
func (c *cluster) notRestarted(before map[string]string, after time.Duration) {
	c.t.Helper()
	time.Sleep(after)
	for name, uid := range before {
		if pod, err := c.workload(name); err != nil || string(pod.UID) != uid || pod.DeletionTimestamp != nil {
			c.t.Errorf("pod %s was restarted: %v", name, err)
		}
	}
}

// events of a namespace, one a line.
func (c *cluster) events(namespace string) string {
	c.t.Helper()
	return c.kubectl("-n", namespace, "get", "events.events.k8s.io", "-o", `jsonpath={range .items[*]}{.regarding.kind} {.regarding.name} {.reason} {.note}{"\n"}{end}`)
}
