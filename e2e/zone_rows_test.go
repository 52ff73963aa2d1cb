package e2e

import (
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/dangerzone"
)

// zoneValues have every setting of the danger zone of Longhorn 1.10 to 1.12.1: a value other than the default, and two odd
// spellings of one value, as a user may have them in git. Longhorn accepts networks and classes in one spelling only.
var zoneValues = map[string][]string{
	"taint-toleration":                                  {"dedicated=storage:NoSchedule", "b=2:NoExecute; a=1:NoSchedule", "a=1:NoSchedule;b=2:NoExecute"},
	"system-managed-components-node-selector":           {"disktype:ssd", "zone:a; disktype:ssd", "disktype:ssd;zone:a"},
	"priority-class":                                    {"system-node-critical", "system-cluster-critical", "system-cluster-critical"},
	"storage-network":                                   {netA, netA, netA},
	"storage-network-for-rwx-volume-enabled":            {"true"},
	"endpoint-network-for-rwx-volume":                   {netB, netB, netB},
	"guaranteed-instance-manager-cpu":                   {`{"v1":"20","v2":"20"}`, `{"v2": "10", "v1": "10.0"}`, "10"},
	"v1-data-engine":                                    {"false", "True", "1"},
	"v2-data-engine":                                    {"true", "TRUE", "t"},
	"disable-snapshot-purge":                            {"true", "True", "1"},
	"concurrent-replica-rebuild-per-node-limit":         {"3", "+3", "03"},
	"concurrent-backing-image-replenish-per-node-limit": {"3", "05", "+5"},
	"instance-manager-pod-liveness-probe-timeout":       {"20", "020", "+20"},
	"engine-image-pod-liveness-probe-period":            {"10", "+10", "010"},
	"engine-image-pod-liveness-probe-timeout":           {"8", "08", "8"},
	"engine-image-pod-liveness-probe-failure-threshold": {"6", "+6", "6"},
	"system-managed-csi-components-resource-limits":     {`{"csi-attacher":{"requests":{"cpu":"10m"}},"longhorn-csi-plugin":{"requests":{"memory":"64Mi"}}}`, `{ "csi-attacher": {"requests": {"memory": "1024Mi", "cpu": "0.1"}} }`, `{"csi-attacher":{"requests":{"cpu":"100m","memory":"1Gi"}}}`},
	"log-path":                           {"/var/log/longhorn", "/var/log//longhorn/", "/var/log/longhorn"},
	"data-engine-cpu-mask":               {`{"v2":"0x7"}`, `{ "v2": "0-2" }`, "0x07"},
	"data-engine-memory-size":            {`{"v2":"1024"}`, `{"v2": "01024"}`, "+1024"},
	"data-engine-hugepage-enabled":       {`{"v2":"false"}`, `{"v2":"False"}`, "0"},
	"data-engine-interrupt-mode-enabled": {`{"v2":"true"}`, `{"v2": "T"}`, "True"},
	"data-engine-number-of-cpu-cores":    {`{"v2":"2"}`, `{"v2": "+2"}`, "02"},
	"data-engine-cpu-isolation-enabled":  {`{"v2":"true"}`, `{"v2":"TRUE"}`, "1"},
	"data-engine-iobuf-large-pool-size":  {`{"v2":"4096"}`, `{"v2": "04096"}`, "4096"},
	"data-engine-iobuf-small-pool-size":  {`{"v2":"16384"}`, `{"v2": "+16384"}`, "16384"},
}

// long is set by -tags long.
var long = false

// zoneRows of a release that has these settings.
func zoneRows(has map[string]string) []dangerzone.Row {
	const network, v2 = "storage-network", "v2-data-engine"
	rwx, given := "endpoint-network-for-rwx-volume", []string(nil)
	if _, has := has[rwx]; !has {
		rwx, given = "storage-network-for-rwx-volume-enabled", []string{network}
	}
	both := []string{"rwo", "rwx"}
	all := []dangerzone.Row{
		// Longhorn's sync of the RWX setting deletes instance managers that are in use.
		{Settings: []string{network, rwx}, Attached: []string{"rwo"}, Core: true},
		{Settings: []string{network, rwx}, Attached: both},
		{Settings: []string{rwx, network}, Attached: []string{"rwo"}},
		{Settings: []string{network}, Attached: both},
		{Settings: []string{rwx}, Given: given, Attached: both},
		{Settings: []string{"system-managed-csi-components-resource-limits", rwx}, Attached: both},
		{Settings: []string{"engine-image-pod-liveness-probe-period", "engine-image-pod-liveness-probe-timeout"}, Attached: both},
	}
	all = append(all, dangerzone.Combinations(network, rwx, given, []string{
		"taint-toleration", "system-managed-components-node-selector", "priority-class", "guaranteed-instance-manager-cpu", "instance-manager-pod-liveness-probe-timeout",
	})...)
	for _, name := range slices.Sorted(maps.Keys(zoneValues)) {
		switch {
		case name == network || name == rwx:
		case ofSPDK(name):
			all = append(all, dangerzone.Row{Settings: []string{name}, Given: []string{v2}, Attached: []string{"v2"}})
		default:
			all = append(all, dangerzone.Row{Settings: []string{name}, Attached: both})
		}
	}
	for _, together := range [][]string{
		{"data-engine-number-of-cpu-cores", "data-engine-cpu-isolation-enabled", "data-engine-iobuf-large-pool-size", "data-engine-iobuf-small-pool-size"},
		{"data-engine-number-of-cpu-cores", "data-engine-cpu-isolation-enabled"},
		{"data-engine-cpu-mask", "data-engine-memory-size"},
		{"data-engine-hugepage-enabled", "data-engine-interrupt-mode-enabled"},
		{"data-engine-iobuf-large-pool-size", "data-engine-iobuf-small-pool-size"},
		{network, "log-path"}, {rwx, "data-engine-memory-size"}, {"priority-class", "data-engine-cpu-mask"},
	} {
		all = append(all, dangerzone.Row{Settings: together, Given: []string{v2}, Attached: []string{"v2"}, Core: len(together) == 4})
	}
	var rows []dangerzone.Row
	for _, row := range all {
		here := row.Core || long
		for _, name := range row.Settings {
			_, known := has[name]
			here = here && known
		}
		if here {
			rows = append(rows, row)
		}
	}
	return rows
}

// ofSPDK: only instance managers of the v2 data engine are built with the setting.
func ofSPDK(name string) bool { return strings.HasPrefix(name, "data-engine-") || name == "log-path" }
