package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// TestSPDKSettingsWaitForInstanceManagersInUse changes the settings that Longhorn
// 1.12.1 adds: the number of CPU cores changes the CPU mask and the CPU request too.
func TestSPDKSettingsWaitForInstanceManagersInUse(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true, longhorn: "v1.12.1"})
	lh := c.Longhorn()
	c.must(lh.EnableV2(t.Context()))
	c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: "pvc-2", Engine: "v2", ReplicaNodes: []string{"node-3"}}))
	c.must(lh.Attach(t.Context(), "pvc-2", "node-3"))
	used := c.instanceManagerPod("node-3", "v2")

	names := []string{"data-engine-number-of-cpu-cores", "data-engine-cpu-isolation-enabled", "data-engine-iobuf-large-pool-size", "data-engine-iobuf-small-pool-size"}
	for i, value := range []string{`{"v2":"2"}`, `{"v2":"true"}`, `{"v2":"4096"}`, `{"v2":"16384"}`} {
		c.set(system, names[i], value)
	}
	built := func(node string) error {
		pods := c.pods(map[string]string{"longhorn.io/node": node, "longhorn.io/data-engine": "v2"})
		if len(pods) != 1 {
			return fmt.Errorf("%d pods on %s", len(pods), node)
		}
		container := pods[0].Spec.Containers[0]
		args := strings.Join(container.Args, " ")
		for _, want := range []string{"--spdk-cpumask  --spdk-core-number 2", "large-pool-size 4096", "small-pool-size 16384", "--enable-irq-affinity"} {
			if !strings.Contains(args, want) {
				return fmt.Errorf("%s on %s is not started with %s: %s", pods[0].Name, node, want, args)
			}
		}
		if cpu := container.Resources.Requests.Cpu().String(); cpu != "2" {
			return fmt.Errorf("%s on %s asks for %s of CPU", pods[0].Name, node, cpu)
		}
		return nil
	}
	for _, node := range []string{"node-1", "node-2"} {
		c.eventually("idle instance managers restart", 60*time.Second, func() error { return built(node) })
	}
	c.eventually("the rest waits for what runs", 30*time.Second, func() error {
		for _, name := range names {
			if s := c.settingStatuses()[name]; s.applied || !strings.Contains(s.reason, "pvc-2") {
				return fmt.Errorf("%s: %+v", name, s)
			}
		}
		return nil
	})
	if now := c.instanceManagerPod("node-3", "v2"); now.UID != used.UID {
		t.Error("an instance manager in use was restarted")
	}

	c.must(lh.Detach(t.Context(), "pvc-2"))
	c.eventually("all is applied", 60*time.Second, func() error {
		for _, name := range append(names, "data-engine-cpu-mask", "guaranteed-instance-manager-cpu") {
			if s := c.settingStatuses()[name]; !s.applied {
				return fmt.Errorf("%s: %+v", name, s)
			}
		}
		return built("node-3")
	})
	c.comesToRest("instance managers of v2", 12*time.Second, func() string {
		var uids []string
		for _, pod := range c.pods(map[string]string{"longhorn.io/data-engine": "v2"}) {
			uids = append(uids, string(pod.UID))
		}
		slices.Sort(uids)
		return strings.Join(uids, " ")
	})
}
