package e2e

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// TestStandsDownBesideLonghorn runs what longhorn-manager v1.7.0 does in every
// manager (setting_controller.go): on each event of a setting it writes applied,
// true where its own sync went well. The two must not write for ever.
func TestStandsDownBesideLonghorn(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, workloads: true})
	events, err := c.Client.Watch(t.Context(), &longhorn.SettingList{}, client.InNamespace(namespace))
	c.must(err)
	var writes atomic.Int64
	go func() {
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"applied": true}})
		if err != nil {
			return
		}
		for event := range events.ResultChan() {
			if setting, ok := event.Object.(*longhorn.Setting); ok && !setting.Status.Applied {
				writes.Add(1)
				_ = c.Client.Status().Patch(t.Context(), setting, client.RawPatch(types.MergePatchType, patch))
			}
		}
	}()
	c.set(system, "storage-network", netA)
	c.set(system, "storage-network-for-rwx-volume-enabled", "true")
	c.eventually("Fairlead's own settings say the truth", 10*time.Second, func() error {
		out := c.kubectl("-n", namespace, "get", own, "storage-network-for-rwx-volume-enabled", "-o", "jsonpath={.status.applied} {.status.source}")
		if out != "false longhorn" {
			return fmt.Errorf("it says %s", out)
		}
		return nil
	})
	time.Sleep(2 * time.Second)
	c.comesToRest("Longhorn's settings", 3*time.Second, c.versions)
	if n := writes.Load(); n == 0 || n > 12 {
		t.Errorf("Longhorn had to write applied %d times", n)
	}
	c.kubectl("scale", "statefulset/web", "--replicas=0")
	c.must(c.WaitAttached(t.Context(), sandbox.SharedVolume, false))
	c.must(c.Longhorn().Detach(t.Context(), sandbox.SharedVolume))
	c.waitApplied(netA + "@lhnet1")
}

// versions are the resource versions of Longhorn's network settings.
func (c *cluster) versions() string {
	c.t.Helper()
	return c.kubectl("-n", namespace, "get", system, "storage-network", "storage-network-for-rwx-volume-enabled", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
}
