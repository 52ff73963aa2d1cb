package e2e

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestChangeIsTakenBackWithoutRestarts takes a network back while RWX volumes keep all CSI plugin pods from joining it. The
// template has changed twice, so it is of a new generation, but its pods are built from it. It takes a quarter of a minute.
func TestChangeIsTakenBackWithoutRestarts(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, networks: "gate: node"})
	for _, node := range []string{"node-1", "node-2", "node-3"} {
		c.attachNew(node, standin.Volume{Name: "pvc-" + node, Shared: true})
	}
	before := c.clientUIDs()
	const setting = string(catalog.EndpointNetworkForRWX)
	c.set(own, setting, netA)
	c.waitHas("roll-out", 30*time.Second, func() string { return c.rollout("{.status.phase}: {.status.message}") }, "RollingClients: 0 of 3 CSI plugin pods on the network", "RWX volumes attached")
	c.eventually("the template to be on the network", 10*time.Second, func() error { return lacks(c.templateNetworks(), "storage-net") })

	c.has(c.set(own, setting, ""), "no CSI plugin pod restarts")
	c.waitApplied("")
	if after := c.clientUIDs(); after != before {
		t.Errorf("CSI plugin pods were %s and are %s", before, after)
	}
}

func (c *cluster) templateNetworks() string {
	return c.kubectl("-n", namespace, "get", "daemonset", "longhorn-csi-plugin", "-o", "jsonpath={.spec.template.metadata.annotations}")
}

func (c *cluster) clientUIDs() string {
	var uids []types.UID
	for _, pod := range c.clients() {
		uids = append(uids, pod.UID)
	}
	return fmt.Sprint(uids)
}
