package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// TestLonghornKeepsInstanceManagersInUse does what Longhorn's sync of an RWX network setting does while
// storage-network waits (updateCNI): it deletes every instance manager that is not on the storage network.
func TestLonghornKeepsInstanceManagersInUse(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true})
	c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-1", ReplicaNodes: []string{"node-2"}}))
	c.must(c.Longhorn().Attach(t.Context(), "pvc-1", "node-1"))
	c.set(system, "storage-network", netA)
	says := c.set(system, "storage-network-for-rwx-volume-enabled", "true")
	if want := "storage-network still waits for 2 instance managers in use: this change restarts none of them"; !strings.Contains(says, want) {
		t.Errorf("got  %s\nwant %s", says, want)
	}
	c.waitApplied(netA + "@lhnet1")

	manager := "--as=system:serviceaccount:" + namespace + ":" + storage.Longhorn().ServiceAccount
	deletes := func(pod string, flags ...string) []string {
		return append([]string{"-n", namespace, "delete", "pod", pod, "--wait=false"}, flags...)
	}
	for node, runs := range map[string]string{"node-1": "pvc-1-e-0", "node-2": "pvc-1-r-0"} {
		pod := c.instanceManagerPod(node, "v1")
		want := fmt.Sprintf("instance manager %s on %s runs %s of volume pvc-1, which is attached", pod.Name, node, runs)
		for _, flags := range [][]string{{manager, "--as-group=system:masters"}, {manager, "--as-group=system:masters", "--dry-run=server"}} {
			if out := c.refused(deletes(pod.Name, flags...)...); !strings.Contains(out, want) {
				t.Errorf("got  %s\nwant %s", out, want)
			}
		}
		c.kubectl(deletes(pod.Name, "--dry-run=server")...) // an administrator may
		if now := c.instanceManagerPod(node, "v1"); now.UID != pod.UID || now.DeletionTimestamp != nil {
			t.Errorf("the instance manager of %s is restarted", node)
		}
	}
	c.kubectl(deletes(c.instanceManagerPod("node-3", "v1").Name, manager, "--as-group=system:masters")...) // it runs nothing

	c.must(c.Longhorn().Detach(t.Context(), "pvc-1"))
	c.eventually("the storage network is applied", 60*time.Second, func() error {
		if out := c.kubectl("-n", namespace, "get", own, "storage-network", "-o", "jsonpath={.status.applied} {.status.conditions[0].message}"); !strings.HasPrefix(out, "true ") {
			return fmt.Errorf("it is %s", out)
		}
		return nil
	})
}
