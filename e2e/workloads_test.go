package e2e

import (
	"errors"
	"fmt"
	"strings"
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
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// TestWorkloads has the CSI plugin pod of a node go in every way that it can,
// and looks at who is restarted for it: each workload with a dead mount once,
// and nobody else.
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
	lone := c.pod("lone", nil, "shared")
	away := c.pod("away", map[string]string{storage.OptOutAnnotation: "true"}, "shared")
	away.OwnerReferences = []metav1.OwnerReference{c.idleOwner()}
	c.must(c.Client.Create(t.Context(), lone))
	c.must(c.Client.Create(t.Context(), away))
	for name, claims := range map[string][]string{
		"one": {"shared"}, "two": {"shared", "other"}, "static": {"static"}, // an RWX volume each, at least
		"own": {"own"}, "migratable": {"migratable"}, "none": nil,
	} {
		c.must(c.Client.Create(t.Context(), c.statefulSet(name, claims...)))
	}
	affected, spared := []string{"one-0", "two-0", "static-0"}, []string{"own-0", "migratable-0", "none-0", "lone", "away"}
	c.waitRunning(append(append([]string{}, affected...), spared...)...)
	c.notRestarted(c.uids(append(affected, spared...)...), 2*time.Second) // nobody is, at first

	for _, way := range []struct {
		name string
		do   func(c *cluster, pod *corev1.Pod)
	}{
		{"deleted", func(c *cluster, pod *corev1.Pod) { c.must(c.Client.Delete(t.Context(), pod)) }},
		{"force-deleted", func(c *cluster, pod *corev1.Pod) {
			c.must(c.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
		}},
		{"crashed", func(c *cluster, pod *corev1.Pod) {
			c.kubectl("-n", namespace, "patch", "pod", pod.Name, "--subresource=status", "-p", `{"status":{"phase":"Failed"}}`)
		}},
		{"made anew in its pod", func(c *cluster, pod *corev1.Pod) {
			c.must(c.RestartSandbox(t.Context(), client.ObjectKeyFromObject(pod)))
		}},
	} {
		t.Run("a client that is "+way.name, func(t *testing.T) {
			c := &cluster{Sandbox: c.Sandbox, t: t}
			c.nextSecond()
			before, alive := c.uids(affected...), c.uids(spared...)
			way.do(c, c.clientOn("node-1"))
			c.eventually("every affected workload is restarted", 30*time.Second, func() error { return c.allReplaced(before) })
			c.waitRunning(affected...)
			c.notRestarted(c.uids(affected...), 3*time.Second) // once
			c.notRestarted(alive, 0)
		})
	}

	t.Run("those that can't be restarted are told about", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.eventually("events", 10*time.Second, func() error {
			out := c.kubectl("get", "events.events.k8s.io", "-o", `jsonpath={range .items[*]}{.regarding.kind} {.regarding.name} {.reason} {.note}{"\n"}{end}`)
			for _, want := range []string{
				"Pod lone DeadMount volume pvc-shared was mounted before", "Pod away DeadMount volume pvc-shared was mounted before",
				"StatefulSet one Remount restarted pod one-0 on node-1: volume pvc-shared was mounted before",
				"StatefulSet two Remount restarted pod two-0 on node-1: volume pvc-other, pvc-shared was mounted before",
				"the pod has no controller that would recreate it", "annotation fairlead.io/opt-out keeps Fairlead off",
			} {
				if !strings.Contains(out, want) {
					return fmt.Errorf("no event %q in\n%s", want, out)
				}
			}
			return nil
		})
	})

	t.Run("nobody is restarted while the setting is off, and all are once it is on", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.set(system, string(catalog.AutoDeletePod), "false")
		c.nextSecond()
		before := c.uids(affected...)
		c.must(c.Client.Delete(t.Context(), c.clientOn("node-1"), client.GracePeriodSeconds(0)))
		c.notRestarted(before, 3*time.Second)
		c.set(system, string(catalog.AutoDeletePod), "true")
		c.eventually("every affected workload is restarted", 30*time.Second, func() error { return c.allReplaced(before) })
		c.waitRunning(affected...)
	})

	t.Run("disruption budgets hold, and nothing waits for ever", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "one"}}},
		}
		c.must(c.Client.Create(t.Context(), budget))
		c.eventually("the budget is observed", 10*time.Second, func() error {
			c.must(c.Client.Get(t.Context(), client.ObjectKeyFromObject(budget), budget))
			if budget.Status.ObservedGeneration == 0 {
				return errors.New("not yet")
			}
			return nil
		})
		c.nextSecond()
		kept, others := c.uids("one-0"), c.uids("two-0", "static-0")
		c.must(c.Client.Delete(t.Context(), c.clientOn("node-1"), client.GracePeriodSeconds(0)))
		c.eventually("the others are restarted", 30*time.Second, func() error { return c.allReplaced(others) })
		c.notRestarted(kept, 2*time.Second)
		c.must(c.Client.Delete(t.Context(), budget))
		c.eventually("the last is restarted", 30*time.Second, func() error { return c.allReplaced(kept) })
		c.waitRunning(affected...)
	})

	t.Run("the controller's restart restarts nobody", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		before := c.uids(append(affected, spared...)...)
		replicas := c.Replicas()
		c.must(replicas[len(replicas)-1].Kill())
		_, err := c.StartReplica(t.Context(), sandbox.ControllerDeployment, "controller-again")
		c.must(err)
		c.notRestarted(before, 18*time.Second) // the lease of the one that was killed lasts 8 s
	})
}

// nextSecond waits for the next second of the clock and a little: times in the
// API have no fractions, and what begins in the same second can't be told apart.
func (c *cluster) nextSecond() { time.Sleep(1500 * time.Millisecond) }

// idleOwner is a controller that does nothing. A StatefulSet releases the pod on Kubernetes 1.31:
// there it looks at the UID of the owner alone.
func (c *cluster) idleOwner() metav1.OwnerReference {
	c.t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "idle-owner"}}
	c.must(c.Client.Create(c.t.Context(), owner))
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}
}

func (c *cluster) pod(name string, annotations map[string]string, claims ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations}, Spec: podSpec(claims...)}
}

func (c *cluster) statefulSet(name string, claims ...string) *appsv1.StatefulSet {
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

func (c *cluster) waitRunning(names ...string) {
	c.t.Helper()
	c.eventually("workloads run", 30*time.Second, func() error {
		for _, name := range names {
			var pod corev1.Pod
			if err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &pod); err != nil {
				return err
			}
			if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
				return fmt.Errorf("%s is %s", name, pod.Status.Phase)
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
		var pod corev1.Pod
		c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &pod))
		uids[name] = string(pod.UID)
	}
	return uids
}

func (c *cluster) allReplaced(before map[string]string) error {
	for name, uid := range before {
		var pod corev1.Pod
		if err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &pod); err != nil {
			return err
		}
		if string(pod.UID) == uid {
			return fmt.Errorf("%s is the same", name)
		}
	}
	return nil
}

// notRestarted wants the same pods after that long.
func (c *cluster) notRestarted(before map[string]string, after time.Duration) {
	c.t.Helper()
	time.Sleep(after)
	for name, uid := range before {
		var pod corev1.Pod
		if err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &pod); err != nil || string(pod.UID) != uid || pod.DeletionTimestamp != nil {
			c.t.Errorf("pod %s was restarted: %v", name, err)
		}
	}
}
