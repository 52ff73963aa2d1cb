//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// serverMoves ends the server of a volume, whose next one has another address, while Longhorn restarts no workloads. The mount of
// the client is dead, which Fairlead reports; it evicts the pod once the setting is on. It takes two minutes.
func serverMoves(ctx context.Context, t *testing.T, c *Cluster) {
	networkOn(ctx, t, c)
	const remount = "auto-delete-pod-when-volume-detached-unexpectedly"
	must(t, c.Set(ctx, remount, "false"))
	defer func() { must(t, c.Set(ctx, remount, "true")) }()
	must(t, c.CreateClaim(ctx, "moved", "longhorn-hard", "ReadWriteMany"))
	must(t, c.Run(ctx, Workload{Name: "moved", Claim: "moved", Node: "node-1"}))
	pod, err := c.WaitWorkload(ctx, "moved")
	must(t, err)
	_, err = c.Shell(ctx, "moved", "echo before > /data/file")
	must(t, err)
	volume, err := c.Kubectl(ctx, "", "get", "pvc", "moved", "-o=jsonpath={.spec.volumeName}")
	must(t, err)
	first, err := c.published(ctx, volume)
	must(t, err)

	server, err := c.PodsWith(ctx, Namespace, "longhorn.io/share-manager", volume)
	must(t, err)
	must(t, c.Client.Delete(ctx, &server[0], client.GracePeriodSeconds(0)))
	var now string
	must(t, eventually.Until(ctx, "the server at another address", serverMove, func() (err error) {
		if now, err = c.published(ctx, volume); err == nil && now == first {
			return fmt.Errorf("it is at %s still", now)
		}
		return err
	}))
	must(t, eventually.Until(ctx, "a report of the dead mount", workloadTimeout, func() error {
		dead, err := c.Kubectl(ctx, "", "-n", Namespace, "get", "networkrollouts", "longhorn", "-o=jsonpath={range .status.deadMounts[*]}{.uid} {.reason}: {.message}{end}")
		if want := fmt.Sprintf("%s setting off: volume %s was mounted before its server moved from %s to %s", pod.UID, volume, first, now); err == nil && !strings.Contains(dead, want) {
			return fmt.Errorf("dead mounts are %q, want %q", dead, want)
		}
		return err
	}))
	if out, err := c.Shell(ctx, "moved", "timeout 5 cat /data/file"); err == nil {
		t.Errorf("the mount answers: %q", out)
	}
	if kept, err := c.WaitWorkload(ctx, "moved"); err != nil || kept.UID != pod.UID {
		t.Errorf("the pod was restarted while the setting is off: %v, %v", kept, err)
	}

	must(t, c.Set(ctx, remount, "true"))
	must(t, eventually.Until(ctx, "pod "+pod.Name+" to be gone", workloadTimeout, func() error { return c.gone(ctx, pod) }))
	var successor *corev1.Pod
	successor, err = c.WaitWorkload(ctx, "moved")
	must(t, err)
	read, err := c.Shell(ctx, "moved", "echo after >> /data/file; cat /data/file")
	must(t, err)
	if read != "before\nafter" {
		t.Errorf("the next pod reads %q", read)
	}
	restarts, err := c.restarts(pod)
	must(t, err)
	again, err := c.restarts(successor)
	must(t, err)
	// Longhorn has noted that the server restarted, and deletes the pod, too: which of both is first does not matter.
	if len(restarts) == 0 || len(again) > 0 {
		t.Errorf("the pod was restarted by %v, and its successor by %v", restarts, again)
	}
	t.Logf("the server moved from %s to %s, and the pod was restarted: %v", first, now, restarts)
	must(t, c.Remove(ctx, "moved"))
	_, err = c.Kubectl(ctx, "", "delete", "pvc", "moved", "--timeout=2m")
	must(t, err)
}

// published is the address of a volume's server.
func (c *Cluster) published(ctx context.Context, volume string) (string, error) {
	addresses, err := c.Kubectl(ctx, "", "-n", Namespace, "get", "endpointslices", "-l=kubernetes.io/service-name="+volume, "-o=jsonpath={.items[*].endpoints[*].addresses[*]}")
	if err == nil && addresses == "" {
		return "", errors.New("nothing is published")
	}
	return addresses, err
}
