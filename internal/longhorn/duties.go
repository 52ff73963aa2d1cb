package longhorn

import (
	"strconv"
	"strings"
)

// VersionDuties says which duties suit a range of versions of a storage system, and why.
// docs/reference/duties.md shows the same table.
//
// +kubebuilder:object:generate=false
type VersionDuties struct {
	// From is the first minor version of the range, Before the first version after the
	// range. Empty: the range has no such end.
	From, Before string
	// Does describes the storage system's own behaviour: sentences that begin with its
	// name, and have no full stop at the end.
	Does string
	// Duties are the switches to set, by duty, as the configuration names them.
	Duties map[string]string
}

// Duties of the configuration that depend on the version.
const (
	DutySettings  = "settings"
	DutyPods      = "pods"
	DutyServices  = "services"
	DutyEndpoints = "endpoints"
	DutyWorkloads = "workloads"
	DutyRemount   = "remount"
)

// DutiesFor finds the range of a version (v1.7.0, 1.11.1-rc2); ok is false for an unreadable version.
func DutiesFor(table []VersionDuties, version string) (VersionDuties, bool) {
	minor, ok := minorOf(version)
	if !ok {
		return VersionDuties{}, false
	}
	for _, row := range table {
		from, hasFrom := minorOf(row.From)
		before, hasBefore := minorOf(row.Before)
		if (!hasFrom || minor >= from) && (!hasBefore || minor < before) {
			return row, true
		}
	}
	return VersionDuties{}, false
}

// minorOf makes a comparable number of the major and minor version.
func minorOf(version string) (int, bool) {
	parts := strings.SplitN(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".", 3)
	if len(parts) < 2 {
		return 0, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, false
	}
	digits := strings.IndexFunc(parts[1]+"x", func(r rune) bool { return r < '0' || r > '9' })
	minor, err := strconv.Atoi(parts[1][:digits])
	if err != nil || major < 0 || minor > 999 {
		return 0, false
	}
	return major*1000 + minor, true
}
