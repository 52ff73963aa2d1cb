package e2e

import (
	"maps"
	"slices"
	"strings"
)

// zoneValues are other values than the default, of every setting of the danger zone of Longhorn 1.10 to 1.12.1.
var zoneValues = map[string]string{
	"taint-toleration":                                  "dedicated=storage:NoSchedule",
	"system-managed-components-node-selector":           "disktype:ssd",
	"priority-class":                                    "system-node-critical",
	"storage-network":                                   netA,
	"storage-network-for-rwx-volume-enabled":            "true",
	"endpoint-network-for-rwx-volume":                   netB,
	"guaranteed-instance-manager-cpu":                   `{"v1":"20","v2":"20"}`,
	"v1-data-engine":                                    "false",
	"v2-data-engine":                                    "true",
	"disable-snapshot-purge":                            "true",
	"concurrent-replica-rebuild-per-node-limit":         "3",
	"concurrent-backing-image-replenish-per-node-limit": "3",
	"instance-manager-pod-liveness-probe-timeout":       "20",
	"engine-image-pod-liveness-probe-period":            "10",
	"engine-image-pod-liveness-probe-timeout":           "8",
	"engine-image-pod-liveness-probe-failure-threshold": "6",
	"system-managed-csi-components-resource-limits":     `{"csi-attacher":{"requests":{"cpu":"10m"}},"longhorn-csi-plugin":{"requests":{"memory":"64Mi"}}}`,
	"log-path":                           "/var/log/longhorn",
	"data-engine-cpu-mask":               `{"v2":"0x7"}`,
	"data-engine-memory-size":            `{"v2":"1024"}`,
	"data-engine-hugepage-enabled":       `{"v2":"false"}`,
	"data-engine-interrupt-mode-enabled": `{"v2":"true"}`,
	"data-engine-number-of-cpu-cores":    `{"v2":"2"}`,
	"data-engine-cpu-isolation-enabled":  `{"v2":"true"}`,
	"data-engine-iobuf-large-pool-size":  `{"v2":"4096"}`,
	"data-engine-iobuf-small-pool-size":  `{"v2":"16384"}`,
}

// zoneRow changes settings one after the other, and back again.
type zoneRow struct {
	settings []string
	// given have their other value all the time.
	given []string
	// attached are the volumes that are attached at the change. None is at the change back.
	attached []string
	// core: always run, and in a release that has all of the settings; the others with -tags long.
	core bool
}

func (r zoneRow) name() string {
	return strings.Join(r.settings, "+") + " " + strings.Join(r.attached, "+")
}

// allZoneRows is set by -tags long.
var allZoneRows = false

// zoneRows are the rows of a release that has these settings.
func zoneRows(has map[string]string) []zoneRow {
	const network, v2 = "storage-network", "v2-data-engine"
	rwx, given := "endpoint-network-for-rwx-volume", []string(nil)
	if _, has := has[rwx]; !has {
		rwx, given = "storage-network-for-rwx-volume-enabled", []string{network}
	}
	both := []string{"rwo", "rwx"}
	all := []zoneRow{
		// An instance manager in use is not restarted, though Longhorn's sync of the RWX setting deletes it.
		{settings: []string{network, rwx}, attached: []string{"rwo"}, core: true},
		{settings: []string{network, rwx}, attached: both},
		{settings: []string{rwx, network}, attached: []string{"rwo"}},
		{settings: []string{network}, attached: both},
		{settings: []string{rwx}, given: given, attached: both},
		{settings: []string{"system-managed-csi-components-resource-limits", rwx}, attached: both},
		{settings: []string{"engine-image-pod-liveness-probe-period", "engine-image-pod-liveness-probe-timeout"}, attached: both},
	}
	restarting := []string{
		"taint-toleration", "system-managed-components-node-selector", "priority-class", "guaranteed-instance-manager-cpu", "instance-manager-pod-liveness-probe-timeout",
	}
	for i, name := range restarting {
		all = append(all, zoneRow{settings: []string{network, name}, attached: []string{"rwo"}}, zoneRow{settings: []string{rwx, name}, given: given, attached: both})
		for _, other := range restarting[i+1:] {
			all = append(all, zoneRow{settings: []string{name, other}, attached: []string{"rwo"}})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(zoneValues)) {
		switch {
		case name == network || name == rwx:
		case ofSPDK(name):
			all = append(all, zoneRow{settings: []string{name}, given: []string{v2}, attached: []string{"v2"}})
		default:
			all = append(all, zoneRow{settings: []string{name}, attached: both})
		}
	}
	for _, pair := range [][]string{
		{"data-engine-number-of-cpu-cores", "data-engine-cpu-isolation-enabled"},
		{"data-engine-cpu-mask", "data-engine-memory-size"},
		{"data-engine-hugepage-enabled", "data-engine-interrupt-mode-enabled"},
		{"data-engine-iobuf-large-pool-size", "data-engine-iobuf-small-pool-size"},
		{network, "log-path"}, {rwx, "data-engine-memory-size"}, {"priority-class", "data-engine-cpu-mask"},
	} {
		all = append(all, zoneRow{settings: pair, given: []string{v2}, attached: []string{"v2"}, core: pair[0] == "data-engine-number-of-cpu-cores"})
	}
	var rows []zoneRow
	for _, row := range all {
		here := row.core || allZoneRows
		for _, name := range row.settings {
			_, known := has[name]
			here = here && known
		}
		if here {
			rows = append(rows, row)
		}
	}
	return rows
}

// ofSPDK: a setting that instance managers of the v2 data engine alone are built with.
func ofSPDK(name string) bool { return strings.HasPrefix(name, "data-engine-") || name == "log-path" }
