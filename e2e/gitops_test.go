package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// spellings are two spellings of one value for each setting of the danger zone of Longhorn 1.12.1.
// Longhorn takes networks and classes in one spelling only.
var spellings = map[string][2]string{
	"taint-toleration":                                  {"b=2:NoExecute; a=1:NoSchedule", "a=1:NoSchedule;b=2:NoExecute"},
	"system-managed-components-node-selector":           {"zone:a; disktype:ssd", "disktype:ssd;zone:a"},
	"priority-class":                                    {"system-cluster-critical", "system-cluster-critical"},
	"storage-network":                                   {netA, netA},
	"endpoint-network-for-rwx-volume":                   {netB, netB},
	"guaranteed-instance-manager-cpu":                   {`{"v2": "10", "v1": "10.0"}`, "10"},
	"v1-data-engine":                                    {"True", "1"},
	"v2-data-engine":                                    {"TRUE", "t"},
	"disable-snapshot-purge":                            {"True", "1"},
	"concurrent-replica-rebuild-per-node-limit":         {"+3", "03"},
	"concurrent-backing-image-replenish-per-node-limit": {"05", "+5"},
	"instance-manager-pod-liveness-probe-timeout":       {"020", "+20"},
	"engine-image-pod-liveness-probe-period":            {"+10", "010"},
	"engine-image-pod-liveness-probe-timeout":           {"08", "8"},
	"engine-image-pod-liveness-probe-failure-threshold": {"+6", "6"},
	"log-path": {"/var/log//longhorn/", "/var/log/longhorn"},
	"system-managed-csi-components-resource-limits": {
		`{ "csi-attacher": {"requests": {"memory": "1024Mi", "cpu": "0.1"}} }`, `{"csi-attacher":{"requests":{"cpu":"100m","memory":"1Gi"}}}`,
	},
	"data-engine-cpu-mask":               {`{ "v2": "0-2" }`, "0x07"},
	"data-engine-memory-size":            {`{"v2": "01024"}`, "+1024"},
	"data-engine-hugepage-enabled":       {`{"v2":"False"}`, "0"},
	"data-engine-interrupt-mode-enabled": {`{"v2": "T"}`, "True"},
	"data-engine-number-of-cpu-cores":    {`{"v2": "+2"}`, "02"},
	"data-engine-cpu-isolation-enabled":  {`{"v2":"TRUE"}`, "1"},
	"data-engine-iobuf-large-pool-size":  {`{"v2": "04096"}`, "4096"},
	"data-engine-iobuf-small-pool-size":  {`{"v2": "+16384"}`, "16384"},
}

// TestAppliedSettingsStayAsInGit applies every setting in odd spellings: the cluster keeps them as written,
// and another spelling of the same value restarts nothing.
func TestAppliedSettingsStayAsInGit(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true, longhorn: "v1.12.1"})
	c.must(c.Longhorn().EnableV2(t.Context()))
	c.kubectl("label", "nodes", "--all", "disktype=ssd", "zone=a")
	c.set(system, "auto-cleanup-system-generated-snapshot", "false") // disable-snapshot-purge contradicts it
	has := c.systemSettings()
	for _, d := range catalog.DangerZone() {
		_, there := has[string(d.Name)]
		if _, spelled := spellings[string(d.Name)]; there != spelled {
			t.Errorf("%s: Longhorn has it: %t; it is in the test: %t", d.Name, there, spelled)
		}
	}

	var before map[string]string
	serverSide := []string{"--server-side", "--field-manager=git", "--force-conflicts"}
	for i, how := range [][]string{serverSide, nil, serverSide} {
		manifest := c.settingsManifest(i % 2)
		c.applyManifest(manifest, how)
		c.waitSpelled(i % 2)
		if now := c.componentPods(); before != nil && !maps.Equal(before, now) {
			t.Errorf("another spelling restarted pods:\nbefore %v\nnow    %v", before, now)
		}
		c.comesToRest("settings and pods", 2500*time.Millisecond, func() string { return fmt.Sprint(c.systemSettings(), c.componentPods()) })
		before = c.componentPods()
		c.inGit(manifest)
		versions := c.systemSettings()
		c.applyManifest(manifest, how)
		if again := c.systemSettings(); !maps.Equal(versions, again) {
			t.Errorf("applied once more, settings change:\nbefore %v\nnow    %v", versions, again)
		}
	}
}

// systemSettings are the versions of Longhorn's settings by name.
func (c *cluster) systemSettings() map[string]string {
	c.t.Helper()
	var list longhorn.SettingList
	c.must(c.Client.List(c.t.Context(), &list, client.InNamespace(namespace)))
	versions := map[string]string{}
	for _, s := range list.Items {
		versions[s.Name] = s.ResourceVersion
	}
	return versions
}

func (c *cluster) settingsManifest(spelling int) string {
	c.t.Helper()
	var items []any
	for name, values := range spellings {
		items = append(items, map[string]any{
			"apiVersion": "longhorn.io/v1beta2", "kind": "Setting",
			"metadata": map[string]any{"name": name, "namespace": namespace}, "value": values[spelling],
		})
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	c.must(err)
	return string(text)
}

func (c *cluster) applyManifest(manifest string, how []string) {
	c.t.Helper()
	_, err := c.Kubectl(c.t.Context(), manifest, append([]string{"apply", "-f", "-"}, how...)...)
	c.must(err)
}

// inGit wants that neither kind of kubectl diff shows a difference: it exits 1 where there is one.
func (c *cluster) inGit(manifest string) {
	c.t.Helper()
	for _, how := range [][]string{nil, {"--server-side", "--field-manager=git", "--force-conflicts"}} {
		if out, err := c.Kubectl(c.t.Context(), manifest, append([]string{"diff", "-f", "-"}, how...)...); err != nil {
			c.t.Errorf("kubectl diff %s: %v\n%s", strings.Join(how, " "), err, out)
		}
	}
}

// waitSpelled waits until Fairlead says of every setting, as it is spelled, that it is applied.
func (c *cluster) waitSpelled(spelling int) {
	c.t.Helper()
	c.eventually("settings are applied", 90*time.Second, func() error {
		var missing []error
		statuses := c.settingStatuses()
		for name, values := range spellings {
			if s := statuses[name]; !s.applied || s.value != values[spelling] {
				missing = append(missing, fmt.Errorf("%s: %+v", name, s))
			}
		}
		return errors.Join(missing...)
	})
}
