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

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestAppliedSettingsStayAsInGit applies every setting in odd spellings. The cluster keeps them as written, and another
// spelling of the same value restarts nothing.
func TestAppliedSettingsStayAsInGit(t *testing.T) {
	c := newCluster(t, options{webhooks: 1, controllers: 1, components: true, longhorn: "v1.12.1"})
	c.must(c.Longhorn().EnableV2(t.Context()))
	c.kubectl("label", "nodes", "--all", "disktype=ssd", "zone=a")
	c.set(system, "auto-cleanup-system-generated-snapshot", "false") // disable-snapshot-purge contradicts it
	has := c.systemSettings()
	for _, d := range catalog.DangerZone() {
		_, there := has[string(d.Name)]
		if spelled := len(zoneValues[string(d.Name)]) > 1; there != spelled {
			t.Errorf("%s: Longhorn has it: %t; zoneValues has its spellings: %t", d.Name, there, spelled)
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
			t.Errorf("applied again, settings change:\nbefore %v\nnow    %v", versions, again)
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

// spelled are the settings of Longhorn 1.12.1 in one of the two odd spellings.
func spelled(spelling int) map[string]string {
	values := map[string]string{}
	for name, v := range zoneValues {
		if len(v) > 1 {
			values[name] = v[1+spelling]
		}
	}
	return values
}

func (c *cluster) settingsManifest(spelling int) string {
	c.t.Helper()
	var items []any
	for name, value := range spelled(spelling) {
		items = append(items, map[string]any{
			"apiVersion": "longhorn.io/v1beta2", "kind": "Setting",
			"metadata": map[string]any{"name": name, "namespace": namespace}, "value": value,
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

// inGit wants no difference from either kind of kubectl diff, which exits 1 at a difference.
func (c *cluster) inGit(manifest string) {
	c.t.Helper()
	for _, how := range [][]string{nil, {"--server-side", "--field-manager=git", "--force-conflicts"}} {
		if out, err := c.Kubectl(c.t.Context(), manifest, append([]string{"diff", "-f", "-"}, how...)...); err != nil {
			c.t.Errorf("kubectl diff %s: %v\n%s", strings.Join(how, " "), err, out)
		}
	}
}

// waitSpelled waits until Fairlead reports every setting, with its spelling, as applied.
func (c *cluster) waitSpelled(spelling int) {
	c.t.Helper()
	c.eventually("settings are applied", 90*time.Second, func() error {
		var missing []error
		statuses := c.settingStatuses()
		for name, value := range spelled(spelling) {
			if s := statuses[name]; !s.applied || s.value != value {
				missing = append(missing, fmt.Errorf("%s: %+v", name, s))
			}
		}
		return errors.Join(missing...)
	})
}
