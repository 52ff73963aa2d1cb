package e2e

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestSelfSignedInstallation installs the overlay for clusters without
// cert-manager, with the binary that is shipped.
func TestSelfSignedInstallation(t *testing.T) {
	c := newCluster(t, options{overlay: sandbox.SelfSigned, webhooks: 2, controllers: 2, binary: "FAIRLEAD_RELEASE_BINARY"})

	t.Run("the restricted pod security standard lets its pods run", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		for _, name := range []string{sandbox.WebhookDeployment, sandbox.ControllerDeployment} {
			c.eventually(name+" is available", 30*time.Second, func() error {
				var d appsv1.Deployment
				c.must(c.Client.Get(t.Context(), client.ObjectKey{Namespace: "fairlead-system", Name: name}, &d))
				if d.Status.AvailableReplicas != 2 {
					return fmt.Errorf("%d of 2 replicas available: %v", d.Status.AvailableReplicas, d.Status.Conditions)
				}
				return nil
			})
		}
	})
	t.Run("service accounts may do what they must and no more", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
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
			{"webhook", "create", "subjectaccessreviews.authorization.k8s.io", "", "yes"},
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
	t.Run("an idle webhook keeps at most 20 MiB alive", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		for _, r := range c.Replicas()[:2] {
			live := liveHeapMiB(t, c.metrics(r.Name))
			t.Logf("%s: %.1f MiB of live heap", r.Name, live)
			if live > 20 {
				t.Errorf("%s has %.1f MiB of live heap", r.Name, live)
			}
		}
	})
	t.Run("the main job is done", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-1", Shared: true}))
		c.set(own, "endpoint-network-for-rwx-volume", netB)
		c.waitApplied(netB + "@lhnet2")
		c.checkRow("pvc-1", netB+"@lhnet2", "cluster.local")
	})
	t.Run("the other controller takes over", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		holder := c.leader()
		had := 0
		for _, r := range c.Replicas()[2:] {
			if leads(t, r) {
				c.must(r.Stop())
				had++
			}
		}
		if had > 1 { // on a starved machine the first has lost the lease before, and has ended: a kubelet would have started it again
			_, err := c.StartReplica(t.Context(), sandbox.ControllerDeployment, "controller-again")
			c.must(err)
		}
		c.eventually("another leader", 30*time.Second, func() error {
			if now := c.leader(); now == holder || now == "" {
				return fmt.Errorf("the leader is %q", now)
			}
			return nil
		})
		c.set(own, "endpoint-network-for-rwx-volume", netA)
		c.waitApplied(netA + "@lhnet2")
	})
}

func (c *cluster) leader() string {
	return c.kubectl("-n", "fairlead-system", "get", "lease", "fairlead-controller", "-o", "jsonpath={.spec.holderIdentity}")
}

// leads tells whether the replica's log says that it has the lease, or had it.
func leads(t *testing.T, r *sandbox.Replica) bool {
	t.Helper()
	data, err := os.ReadFile(r.Log)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(data, []byte("uccessfully acquired lease"))
}

// liveHeapMiB is what the last garbage collection of a process kept, by its metrics.
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
