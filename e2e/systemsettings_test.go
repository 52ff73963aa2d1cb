package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// TestLonghornsSettingsStayUnwritten: each write to one makes every longhorn-manager
// sync it at once. The stand-in leaves `applied` true, as Longhorn does while a gate is open.
func TestLonghornsSettingsStayUnwritten(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, workloads: true})
	c.set(system, "storage-network", netA)
	c.set(system, "storage-network-for-rwx-volume-enabled", "true")
	before := c.versions()
	c.waitRWXSetting("false longhorn")
	c.kubectl("scale", "statefulset/web", "--replicas=0")
	c.must(c.WaitAttached(t.Context(), sandbox.SharedVolume, false))
	c.must(c.Longhorn().Detach(t.Context(), sandbox.SharedVolume))
	c.waitApplied(netA + "@lhnet1")
	c.waitRWXSetting("true longhorn")
	if after := c.versions(); after != before {
		t.Errorf("Longhorn's settings were written: versions %s, then %s", before, after)
	}
}

// waitRWXSetting waits for applied and source of Fairlead's own setting.
func (c *cluster) waitRWXSetting(want string) {
	c.t.Helper()
	c.eventually("Fairlead's own setting is "+want, 20*time.Second, func() error {
		out := c.kubectl("-n", namespace, "get", own, "storage-network-for-rwx-volume-enabled", "-o", "jsonpath={.status.applied} {.status.source}")
		if out != want {
			return fmt.Errorf("it says %s", out)
		}
		return nil
	})
}

// versions are the resource versions of Longhorn's network settings.
func (c *cluster) versions() string {
	c.t.Helper()
	return c.kubectl("-n", namespace, "get", system, "storage-network", "storage-network-for-rwx-volume-enabled", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
}
