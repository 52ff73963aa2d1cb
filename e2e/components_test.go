package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestComponents shows that the stand-in for longhorn-manager treats its
// components as Longhorn does, with no Fairlead beside it.
func TestComponents(t *testing.T) {
	c := newControlPlane(t, options{})
	c.seedLonghorn()
	lh := c.Longhorn()
	c.runComponents(lh)

	if out := c.instanceManagers(); out != "node-1 v1 running [] []\nnode-2 v1 running [] []\nnode-3 v1 running [] []\n" {
		t.Errorf("instance managers:\n%s", out)
	}
	if n := len(c.pods(backingImageManagerLabels)); n != 1 {
		t.Errorf("%d pods of backing image managers", n)
	}
	pod := c.instanceManagerPod("node-2", "v1")
	if got := pod.Spec.PriorityClassName + " " + pod.Spec.Containers[0].Resources.Requests.Cpu().String() + " " + pod.Annotations["longhorn.io/last-applied-tolerations"]; got != "longhorn-critical 1920m []" {
		t.Errorf("an instance manager's pod is built with %s", got)
	}

	t.Run("a lost pod is made anew, by the settings of the moment", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.set(system, "storage-network", netA)
		c.set(system, "taint-toleration", "disk=slow:NoSchedule")
		// The manager builds by its cache, which may learn of a setting after the pod is lost: so until it knows.
		c.eventually("a pod built by the settings of the moment", 60*time.Second, func() error {
			c.must(c.Client.Delete(t.Context(), &pod))
			pod = c.waitRenewed(pod.UID)
			networks, tolerations := pod.Annotations["k8s.v1.cni.cncf.io/networks"], pod.Annotations["longhorn.io/last-applied-tolerations"]
			if networks != `[{"namespace": "kube-system", "name": "storage-net", "interface": "lhnet1"}]` ||
				tolerations != `[{"key":"disk","operator":"Equal","value":"slow","effect":"NoSchedule"}]` {
				return fmt.Errorf("it asks for %s, and was built with %s", networks, tolerations)
			}
			return nil
		})
	})
	t.Run("what runs is told, of both engines", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.must(lh.EnableV2(t.Context()))
		if args := fmt.Sprint(c.instanceManagerPod("node-1", "v2").Spec.Containers[0].Args); !strings.Contains(args, "--spdk-cpumask 0x3") {
			t.Errorf("v2 runs %s", args)
		}
		c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: "pvc-1", ReplicaNodes: []string{"node-1", "node-2"}}))
		c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: "pvc-2", Engine: "v2", ReplicaNodes: []string{"node-3"}}))
		c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: "pvc-3", Shared: true}))
		c.must(lh.Attach(t.Context(), "pvc-1", "node-3"))
		c.must(lh.Attach(t.Context(), "pvc-2", "node-3"))
		c.must(lh.Attach(t.Context(), "pvc-3", "node-1"))
		c.must(lh.AddReplica(t.Context(), "pvc-1", "node-3"))
		c.mustRun(`node-1 v1 running [pvc-3-e-0:running] [pvc-1-r-0:running]
node-1 v2 running [] []
node-2 v1 running [] [pvc-1-r-1:running]
node-2 v2 running [] []
node-3 v1 running [pvc-1-e-0:running] [pvc-1-r-2:starting]
node-3 v2 running [pvc-2-e-0:running] [pvc-2-r-0:running]
`)
		lost := c.instanceManagerPod("node-2", "v1")
		c.must(c.Client.Delete(t.Context(), &lost))
		c.waitRenewed(lost.UID)
		c.eventually("the replica on node-2 runs again", 20*time.Second, func() error {
			if out := c.instanceManagers(); !strings.Contains(out, "node-2 v1 running [] [pvc-1-r-1:running]") {
				return fmt.Errorf("instance managers:\n%s", out)
			}
			return nil
		})
		for _, volume := range []string{"pvc-1", "pvc-2", "pvc-3"} {
			c.must(lh.Detach(t.Context(), volume))
		}
		idle := "node-%[1]d v1 running [] []\nnode-%[1]d v2 running [] []\n"
		c.mustRun(fmt.Sprintf(idle, 1) + fmt.Sprintf(idle, 2) + fmt.Sprintf(idle, 3))
		c.set(system, "v2-data-engine", "false")
		c.eventually("the instance managers of v2 go", 20*time.Second, func() error {
			if n := len(c.pods(map[string]string{"longhorn.io/data-engine": "v2"})); n != 0 {
				return fmt.Errorf("%d pods of v2", n)
			}
			return nil
		})
	})
}

var backingImageManagerLabels = map[string]string{"longhorn.io/component": "backing-image-manager"}

// instanceManagers are one on a line: node, data engine, state, engines and replicas.
func (c *cluster) instanceManagers() string {
	c.t.Helper()
	const names = `{{range $name, $i := %s}}{{$name}}:{{$i.status.state}} {{end}}`
	out := c.kubectl("-n", namespace, "get", "instancemanagers", "-o", "go-template={{range .items}}{{.spec.nodeID}} {{.spec.dataEngine}} {{.status.currentState}} ["+
		fmt.Sprintf(names, ".status.instanceEngines")+"] ["+fmt.Sprintf(names, ".status.instanceReplicas")+"]{{println}}{{end}}")
	lines := strings.SplitAfter(strings.ReplaceAll(out, " ]", "]"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (c *cluster) mustRun(want string) {
	c.t.Helper()
	if out := c.instanceManagers(); out != want {
		c.t.Errorf("got:\n%swant:\n%s", out, want)
	}
}

func (c *cluster) instanceManagerPod(node, engine string) corev1.Pod {
	c.t.Helper()
	pods := c.pods(map[string]string{"longhorn.io/component": "instance-manager", "longhorn.io/node": node, "longhorn.io/data-engine": engine})
	if len(pods) != 1 {
		c.t.Fatalf("%d instance managers of %s on %s", len(pods), engine, node)
	}
	return pods[0]
}

// waitRenewed waits until there is another instance manager of v1 on node-2.
func (c *cluster) waitRenewed(was types.UID) corev1.Pod {
	c.t.Helper()
	var pod corev1.Pod
	c.eventually("the pod is made anew", 20*time.Second, func() error {
		pods := c.pods(map[string]string{"longhorn.io/component": "instance-manager", "longhorn.io/node": "node-2", "longhorn.io/data-engine": "v1"})
		if len(pods) != 1 || pods[0].UID == was || pods[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%d pods, or the one before, or not running", len(pods))
		}
		pod = pods[0]
		return nil
	})
	return pod
}
