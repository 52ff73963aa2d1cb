//go:build linux

package nodes

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// The network in networks.yaml on which a volume's server has an address of its own.
const (
	fixedNetwork = "kube-system/fixed-net"
	fixedIP      = "192.168.60.200"
)

// writeAlways appends to the volume and to a copy in the container until the container has /tmp/stop.
const writeAlways = `trap exit TERM; while [ ! -e /tmp/stop ]; do dd if=/dev/urandom bs=16k count=1 2>/dev/null | tee -a /data/file >> /tmp/copy || touch /tmp/failed; sleep 0.1; done; touch /tmp/stopped; while :; do sleep 1; done`

// fixedAddress moves the server of a volume with a network and an address of its own to another node. Its client writes on
// by the same mount.
func fixedAddress(ctx context.Context, t *testing.T, c *Cluster) {
	networkOn(ctx, t, c)
	// With this setting, Longhorn deletes the pods of a volume whose server has moved: it expects another address.
	const remount = "auto-delete-pod-when-volume-detached-unexpectedly"
	must(t, c.Set(ctx, remount, "false"))
	defer func() { must(t, c.Set(ctx, remount, "true")) }()
	must(t, c.CreateClaim(ctx, "fixed", "longhorn-hard", "ReadWriteMany", fmt.Sprintf(
		`, annotations: {fairlead.io/volume-network: %s, fairlead.io/volume-addresses: %s/24}`, fixedNetwork, fixedIP)))
	must(t, c.waitVolumeNetworks(ctx, fixedNetwork))
	must(t, c.Run(ctx, Workload{Name: "fixed", Claim: "fixed", Node: "node-1", Command: writeAlways}))
	before, err := c.WaitWorkload(ctx, "fixed")
	must(t, err)
	mount, err := c.Shell(ctx, "fixed", "grep ' /data ' /proc/self/mountinfo")
	must(t, err)
	server, err := c.fixedServer(ctx)
	must(t, err)

	c.uncordonLater(t, server.Spec.NodeName)
	_, err = c.Kubectl(ctx, "", "cordon", server.Spec.NodeName)
	must(t, err)
	began := time.Now()
	must(t, c.Client.Delete(ctx, server))
	var moved *corev1.Pod
	must(t, eventually.Until(ctx, "the server to be on another node", workloadTimeout, func() error {
		moved, err = c.fixedServer(ctx)
		if err == nil && moved.Spec.NodeName == server.Spec.NodeName {
			return fmt.Errorf("it is on %s still", moved.Spec.NodeName)
		}
		return err
	}))
	size, err := c.Shell(ctx, "fixed", "wc -c < /tmp/copy")
	must(t, err)
	must(t, eventually.Until(ctx, "the client to write on", workloadTimeout, func() error {
		now, err := c.Shell(ctx, "fixed", "wc -c < /tmp/copy")
		if err == nil && now == size {
			return fmt.Errorf("%s bytes are written", now)
		}
		return err
	}))
	t.Logf("the server moved from %s to %s, and the client wrote on after %s", server.Spec.NodeName, moved.Spec.NodeName, time.Since(began).Round(time.Second))
	_, err = c.Kubectl(ctx, "", "uncordon", server.Spec.NodeName)
	must(t, err)

	must(t, eventually.Until(ctx, "the writer to stop", workloadTimeout, func() error {
		_, err := c.Shell(ctx, "fixed", "touch /tmp/stop; ls /tmp/stopped")
		return err
	}))
	written, err := c.Shell(ctx, "fixed", "ls /tmp/failed 2>/dev/null; sha256sum < /tmp/copy")
	must(t, err)
	must(t, c.Run(ctx, Workload{Name: "fixed-reader", Claim: "fixed", Node: "node-2"}))
	_, err = c.WaitWorkload(ctx, "fixed-reader")
	must(t, err)
	for _, reader := range []string{"fixed", "fixed-reader"} {
		read, err := c.Shell(ctx, reader, "sha256sum < /data/file")
		must(t, err)
		if read != written {
			t.Errorf("written %q, %s reads %q", written, reader, read)
		}
	}
	mountNow, err := c.Shell(ctx, "fixed", "grep ' /data ' /proc/self/mountinfo")
	must(t, err)
	after, err := c.WaitWorkload(ctx, "fixed")
	must(t, err)
	if after.UID != before.UID || mountNow != mount {
		t.Errorf("the client was mounted again: pod %s then %s, mount %q then %q", before.Name, after.Name, mount, mountNow)
	}
	must(t, c.Remove(ctx, "fixed", "fixed-reader"))
	_, err = c.Kubectl(ctx, "", "delete", "pvc", "fixed", "--timeout=2m")
	must(t, err)
	must(t, c.waitVolumeNetworks(ctx, ""))
}

// fixedServer is the server pod that is published under the fixed address, and under no other.
func (c *Cluster) fixedServer(ctx context.Context) (*corev1.Pod, error) {
	volume, err := c.Kubectl(ctx, "", "get", "pvc", "fixed", "-o=jsonpath={.spec.volumeName}")
	if err != nil {
		return nil, err
	}
	published, err := c.Kubectl(ctx, "", "-n", Namespace, "get", "endpointslices", "-l=kubernetes.io/service-name="+volume, "-o=jsonpath={range .items[*].endpoints[*]}{.addresses} {.targetRef.name} {.targetRef.uid};{end}")
	if err != nil {
		return nil, err
	}
	pods, err := c.PodsWith(ctx, Namespace, "longhorn.io/share-manager", volume)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if ready(&pods[i]) && published == fmt.Sprintf(`["%s"] %s %s;`, fixedIP, pods[i].Name, pods[i].UID) {
			return &pods[i], nil
		}
	}
	return nil, fmt.Errorf("published are %q, of %d pods", published, len(pods))
}

// waitVolumeNetworks waits until servers may use a per-volume network or, if network is empty, until no client uses any.
func (c *Cluster) waitVolumeNetworks(ctx context.Context, network string) error {
	return eventually.Until(ctx, fmt.Sprintf("per-volume network %q", network), applyTimeout, func() error {
		status, err := c.Kubectl(ctx, "", "-n", Namespace, "get", "networkrollouts", "longhorn", "-o=jsonpath={.status.servers.volumeNetworks[*]}|{.status.clients.volumeNetworks[*]}")
		if err != nil {
			return err
		}
		servers, clients, _ := strings.Cut(status, "|")
		if network == "" && clients != "" || !strings.HasPrefix(servers, network) {
			return fmt.Errorf("servers may be on %q, clients are on %q", servers, clients)
		}
		for _, n := range c.Nodes {
			if _, err := c.pluginOn(ctx, n); err != nil {
				return err
			}
		}
		return nil
	})
}
