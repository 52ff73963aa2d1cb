package catalog

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// dangerZones are the changes of Longhorn's danger zone by release, with defaults.
// Source: longhorn-manager types/setting.go, SettingCategoryDangerZone.
var dangerZones = []struct {
	release string
	adds    map[Name]string
	removes []Name
}{
	{"1.7.2",
		map[Name]string{"concurrent-backing-image-replenish-per-node-limit": "5", "concurrent-replica-rebuild-per-node-limit": "5", "disable-snapshot-purge": "false", "guaranteed-instance-manager-cpu": "12", "priority-class": "", "storage-network": "", "storage-network-for-rwx-volume-enabled": "false", "system-managed-components-node-selector": "", "taint-toleration": "", "v1-data-engine": "true", "v2-data-engine": "false", "v2-data-engine-guaranteed-instance-manager-cpu": "1250"},
		nil},
	{"1.8.1", map[Name]string{"v2-data-engine-cpu-mask": "0x1"}, nil},
	{"1.9.0", map[Name]string{"v2-data-engine-hugepage-limit": "2048"}, nil},
	{"1.10.0",
		map[Name]string{"data-engine-cpu-mask": `{"v2":"0x1"}`, "data-engine-hugepage-enabled": `{"v2":"true"}`, "data-engine-interrupt-mode-enabled": `{"v2":"false"}`, "data-engine-memory-size": `{"v2":"2048"}`, "guaranteed-instance-manager-cpu": `{"v1":"12","v2":"12"}`, "instance-manager-pod-liveness-probe-timeout": "10", "log-path": "/var/lib/longhorn/logs/"},
		[]Name{"v2-data-engine-cpu-mask", "v2-data-engine-guaranteed-instance-manager-cpu", "v2-data-engine-hugepage-limit"}},
	{"1.11.1", map[Name]string{"endpoint-network-for-rwx-volume": "", "system-managed-csi-components-resource-limits": ""}, []Name{"storage-network-for-rwx-volume-enabled"}},
	{"1.12.0",
		map[Name]string{"data-engine-cpu-mask": `{"v2":"0x3"}`, "engine-image-pod-liveness-probe-failure-threshold": "3", "engine-image-pod-liveness-probe-period": "5", "engine-image-pod-liveness-probe-timeout": "4"},
		nil},
	{"1.12.1",
		map[Name]string{"data-engine-cpu-isolation-enabled": `{"v2":"false"}`, "data-engine-iobuf-large-pool-size": `{"v2":"1024"}`, "data-engine-iobuf-small-pool-size": `{"v2":"8192"}`, "data-engine-number-of-cpu-cores": `{"v2":"0"}`},
		nil},
}

func TestCatalogMatchesTheDangerZoneOfEachRelease(t *testing.T) {
	zone, ever := map[Name]string{}, map[Name]bool{}
	for _, r := range dangerZones {
		maps.Copy(zone, r.adds)
		for _, name := range r.removes {
			delete(zone, name)
		}
		known := 0
		for _, d := range DangerZone() {
			text, has := zone[d.Name]
			// Earlier releases have V2HugepageLimit in another category, also read-only.
			must.Check(t, has == d.isIn(r.release) || d.Name == V2HugepageLimit,
				"%s: %s, since %q until %q: in the danger zone: %t", r.release, d.Name, d.Since, d.Until, has)
			if !has {
				continue
			}
			known++
			ever[d.Name] = true
			defaults := append([]string{d.Default}, d.OtherDefaults...)
			must.Check(t, slices.Contains(defaults, text), "%s: %s has default %q, the catalog %q", r.release, d.Name, text, defaults)
		}
		must.Equal(t, known, len(zone), "settings of %s in the catalog", r.release)
	}
	must.Equal(t, len(ever), len(DangerZone()), "settings of the danger zone in some release")
}

func (d Definition) isIn(release string) bool {
	v := version.MustParseGeneric(release)
	return v.AtLeast(version.MustParseGeneric(d.Since)) && (d.Until == "" || v.LessThan(version.MustParseGeneric(d.Until)))
}
