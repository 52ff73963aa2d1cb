package beside

import (
	"maps"
	"slices"
	"strings"

	versions "github.com/fairlead-io/fairlead/e2e/longhorn"
)

// Settings of the danger zone that have nothing to do with networks.
const (
	tolerations  = "taint-toleration"
	nodeSelector = "system-managed-components-node-selector"
	managerCPU   = "guaranteed-instance-manager-cpu"
	v1Engine     = "v1-data-engine"
	v2Engine     = "v2-data-engine"
	v2CPU        = "v2-data-engine-guaranteed-instance-manager-cpu"
	autoCleanup  = "auto-cleanup-system-generated-snapshot"
)

// zoneRow changes settings one after the other, and back again.
type zoneRow struct {
	settings []string
	// given have their other value all the time.
	given []string
	// attached are the volumes that are attached at the change. None is at the change back.
	attached []string
}

func (r zoneRow) name() string {
	return strings.Join(r.settings, "+") + " " + strings.Join(r.attached, "+")
}

// allowed is how often a component may restart: once for each value, and only once where all gates open together.
func (r zoneRow) allowed(volumes string) int {
	if volumes == zoneAttached && !slices.Contains(r.settings, StorageNetworkForRWX) {
		return 1
	}
	return len(r.settings)
}

// zoneRows are the rows of a version: those whose settings it has, and one for each other setting.
func zoneRows(zone versions.Zone) []zoneRow {
	has := func(name string) bool { _, has := zone[name]; return has }
	rows := slices.DeleteFunc(knownZoneRows(), func(r zoneRow) bool { return !has(r.settings[0]) })
	for _, name := range slices.Sorted(maps.Keys(zone)) {
		if !slices.ContainsFunc(rows, func(r zoneRow) bool { return slices.Contains(r.settings, name) }) {
			row := zoneRow{settings: []string{name}, attached: []string{"rwo"}}
			if strings.HasPrefix(name, "data-engine-") || strings.HasPrefix(name, "v2-") {
				row.given = []string{v2Engine}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func knownZoneRows() []zoneRow {
	own, both, onNetwork := []string{"rwo"}, []string{"rwo", "rwx"}, []string{StorageNetwork}
	rows := []zoneRow{
		{settings: []string{StorageNetwork}, attached: both},
		{settings: []string{StorageNetworkForRWX}, given: onNetwork, attached: both},
		{settings: []string{v2CPU}, given: []string{v2Engine}, attached: own},
		// An instance manager in use is not restarted, and an RWX volume moves with its CSI plugin pods only.
		{settings: []string{StorageNetwork, StorageNetworkForRWX}, attached: own},
		{settings: []string{StorageNetwork, StorageNetworkForRWX}, attached: both},
		{settings: []string{StorageNetworkForRWX, StorageNetwork}, attached: own},
	}
	for _, name := range []string{
		tolerations, nodeSelector, priorityClass, managerCPU, v1Engine, v2Engine, "disable-snapshot-purge",
		"concurrent-replica-rebuild-per-node-limit", "concurrent-backing-image-replenish-per-node-limit",
	} {
		rows = append(rows, zoneRow{settings: []string{name}, attached: own})
	}
	restarting := []string{tolerations, nodeSelector, priorityClass, managerCPU}
	for i, name := range restarting {
		rows = append(rows,
			zoneRow{settings: []string{StorageNetwork, name}, attached: own},
			zoneRow{settings: []string{StorageNetworkForRWX, name}, given: onNetwork, attached: both})
		for _, other := range restarting[i+1:] {
			rows = append(rows, zoneRow{settings: []string{name, other}, attached: own})
		}
	}
	return rows
}
