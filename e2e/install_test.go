package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestSelfSignedInstallation installs the overlay for clusters without cert-manager, with the release binary and two replicas
// of each process. A lost node or process takes one replica only.
func TestSelfSignedInstallation(t *testing.T) {
	c := newCluster(t, options{overlay: sandbox.SelfSigned, webhooks: 2, controllers: 2, binary: "FAIRLEAD_RELEASE_BINARY"})

	for _, deployment := range deployments {
		c.waitAvailable(deployment)
	}
	c.run("service accounts have only the rights they need", func(t *testing.T, c *cluster) {
		for _, test := range []struct{ account, verb, resource, namespace, want string }{
			{"webhook", "get", "services", namespace, "yes"},
			{"webhook", "list", "pods", namespace, "yes"},
			{"webhook", "list", "pods", "default", "no"},
			{"webhook", "delete", "pods", namespace, "no"},
			{"webhook", "get", "secrets", "kube-system", "no"},
			{"webhook", "get", "secrets/other", "fairlead-system", "no"},
			{"webhook", "patch", "settings.longhorn.io", namespace, "no"},
			{"controller", "delete", "pods", namespace, "yes"},
			{"controller", "delete", "pods", "default", "no"},
			{"controller", "patch", "daemonsets/longhorn-csi-plugin", namespace, "yes"},
			{"controller", "patch", "daemonsets/engine-image-ei-1", namespace, "yes"},
			{"controller", "patch", "deployments", namespace, "yes"},
			{"controller", "delete", "deployments", namespace, "no"},
			{"controller", "patch", "deployments", "default", "no"},
			{"controller", "delete", "volumes.longhorn.io", namespace, "no"},
			{"webhook", "create", "tokenreviews.authentication.k8s.io", "", "no"},
			{"controller", "update", "secrets", "fairlead-system", "no"},
			{"controller", "create", "pods", namespace, "no"},
			{"controller", "patch", "mutatingwebhookconfigurations.admissionregistration.k8s.io/other", "", "no"},
		} {
			args := []string{"auth", "can-i", test.verb, test.resource, "--as=system:serviceaccount:fairlead-system:fairlead-" + test.account}
			if test.namespace != "" {
				args = append(args, "-n", test.namespace)
			}
			out, _ := c.tryKubectl(args...) // "no" is an error to kubectl
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if got := lines[len(lines)-1]; got != test.want {
				t.Errorf("may %s %s %s in %q: %s, want %s", test.account, test.verb, test.resource, test.namespace, got, test.want)
			}
		}
	})
	c.run("a policy bounds what the controller may patch of a pod", func(t *testing.T, c *cluster) {
		asController := "--as=system:serviceaccount:fairlead-system:fairlead-controller"
		pod := c.clients()[0].Name
		dryRun := []string{"-n", namespace, "patch", "pod", pod, asController, "--dry-run=server", "-p"}
		c.kubectl(append(dryRun, `{"metadata":{"annotations":{"fairlead.io/network-namespace":"x"}}}`)...)
		for _, change := range []string{
			`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"annotations":{"a":"b"}}}`, `{"spec":{"activeDeadlineSeconds":1}}`,
		} {
			c.has(c.refused(append(dryRun, change)...), "ValidatingAdmissionPolicy 'fairlead-controller-pods'", "Fairlead may record a network namespace")
		}
		c.kubectl("-n", namespace, "patch", "pod", pod, "--dry-run=server", "-p", `{"metadata":{"labels":{"a":"b"}}}`) // a user
		warnings := []string{"get", "validatingadmissionpolicy", "fairlead-controller-pods", "-o", "jsonpath={.status.observedGeneration} {.status.typeChecking}"}
		c.waitIs("types as the API server checked them", 30*time.Second, "1 {}", func() any { return c.kubectl(warnings...) })
	})
	c.run("an idle webhook uses at most 20 MiB of heap", func(t *testing.T, c *cluster) {
		for _, r := range c.Replicas()[:2] {
			live := liveHeapMiB(t, c.metrics(r.Name))
			t.Logf("%s: %.1f MiB of live heap", r.Name, live)
			if live > 20 {
				t.Errorf("%s has %.1f MiB of live heap", r.Name, live)
			}
		}
	})
	c.run("a volume network is applied", func(t *testing.T, c *cluster) {
		c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-1", Shared: true}))
		c.set(own, "endpoint-network-for-rwx-volume", netB)
		c.waitApplied(netB + "@lhnet2")
		c.checkRow("pvc-1", netB+"@lhnet2", "cluster.local")
	})
	c.run("metrics are kept for the tests of the dashboard", func(t *testing.T, c *cluster) {
		folder := os.Getenv("FAIRLEAD_SCRAPES")
		if folder == "" {
			t.Skip("make test sets FAIRLEAD_SCRAPES")
		}
		c.must(os.MkdirAll(folder, 0o755))
		for _, r := range c.Replicas() {
			c.must(os.WriteFile(filepath.Join(folder, r.Name+".metrics"), []byte(c.metrics(r.Name)), 0o600))
		}
	})
	c.run("each rollout puts replicas on different nodes", func(t *testing.T, c *cluster) {
		for i := range 4 {
			for _, d := range deployments {
				c.rollOut(d, fmt.Sprint(i))
				if nodes := c.nodesOf(d); len(nodes) != 2 {
					t.Errorf("the replicas of %s are on %v", d, nodes)
				}
			}
		}
	})
	c.run("replicas share the one node that is left", func(t *testing.T, c *cluster) {
		for _, node := range []string{"node-2", "node-3"} {
			c.kubectl("cordon", node)
			defer c.kubectl("uncordon", node)
		}
		for _, d := range deployments {
			c.rollOut(d, "on one node")
			if nodes := c.nodesOf(d); len(nodes) != 1 || nodes["node-1"] != 2 {
				t.Errorf("the replicas of %s are on %v", d, nodes)
			}
		}
	})
	for i, way := range []struct {
		name string
		end  func(*sandbox.Replica) error
		most time.Duration
	}{
		{"stopped", (*sandbox.Replica).Stop, followedAfterStop},
		{"killed", (*sandbox.Replica).Kill, followedAfterKill},
	} {
		c.run("a "+way.name+" leader has a successor", func(t *testing.T, c *cluster) {
			leaders := slices.DeleteFunc(slices.Clone(c.Replicas()), func(r *sandbox.Replica) bool { return !r.Running() || !leads(t, r) })
			if len(leaders) != 1 {
				t.Fatalf("%d replicas lead", len(leaders))
			}
			holder, began := c.leader(), time.Now()
			c.must(way.end(leaders[0]))
			c.waitIs("another leader", 30*time.Second, true, func() any {
				now := c.leader()
				return now != holder && now != ""
			})
			took := time.Since(began)
			t.Logf("a %s leader had a successor after %s", way.name, took.Round(time.Millisecond))
			if took > way.most {
				t.Errorf("a %s leader had a successor after %s, limit %s", way.name, took, way.most)
			}
			again, err := c.StartReplica(t.Context(), sandbox.ControllerDeployment, fmt.Sprintf("controller-again-%d", i))
			c.must(err)
			c.must(again.WaitReady(t.Context()))
		})
	}
	c.set(own, "endpoint-network-for-rwx-volume", netA)
	c.waitApplied(netA + "@lhnet2")
}

// A leader has a successor within these times on an idle machine: at once when it was stopped, after its lease when killed.
const (
	followedAfterStop = 4 * time.Second
	followedAfterKill = 12 * time.Second
)

var deployments = []string{sandbox.WebhookDeployment, sandbox.ControllerDeployment}

// rollOut changes the template: kubectl restarts no Deployment twice in a second.
func (c *cluster) rollOut(deployment, why string) {
	c.t.Helper()
	c.kubectl("-n", "fairlead-system", "patch", "deployment", deployment, "-p", fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"test.fairlead.io/roll-out":%q}}}}}`, why))
}

// nodesOf counts the pods of a Deployment by node once its rollout is complete.
func (c *cluster) nodesOf(deployment string) map[string]int {
	c.t.Helper()
	nodes := map[string]int{}
	c.eventually("the rollout of "+deployment, time.Minute, func() error {
		var d appsv1.Deployment
		c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: "fairlead-system", Name: deployment}, &d))
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.UpdatedReplicas != 2 || s.Replicas != 2 || s.ReadyReplicas != 2 {
			return fmt.Errorf("status: %+v", s)
		}
		var pods corev1.PodList
		c.must(c.Client.List(c.t.Context(), &pods, client.InNamespace("fairlead-system"), client.MatchingLabels(d.Spec.Selector.MatchLabels)))
		clear(nodes)
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp == nil {
				nodes[pod.Spec.NodeName]++
			}
		}
		if nodes[""] > 0 || len(nodes) == 0 {
			return errors.New("a pod has no node")
		}
		return nil
	})
	return nodes
}

func (c *cluster) leader() string {
	return c.kubectl("-n", "fairlead-system", "get", "lease", "fairlead-controller", "-o", "jsonpath={.spec.holderIdentity}")
}

// leads reports whether the replica has logged that it acquired the lease.
func leads(t *testing.T, r *sandbox.Replica) bool {
	t.Helper()
	data, err := os.ReadFile(r.Log)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(data, []byte("uccessfully acquired lease"))
}

// liveHeapMiB is the heap after the last garbage collection of a process, by its metrics.
func liveHeapMiB(t *testing.T, metrics string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^go_gc_heap_live_bytes (\S+)$`).FindStringSubmatch(metrics)
	if found == nil {
		t.Fatal("no go_gc_heap_live_bytes in the metrics")
	}
	bytes, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return bytes / (1 << 20)
}
