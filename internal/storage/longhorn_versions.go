package storage

import (
	"strconv"
	"strings"
)

// VersionDuties says what to leave to a range of versions of a storage system,
// and why. docs/reference/duties.md shows the same table.
type VersionDuties struct {
	// From is the first minor version of the range, Before the first after it;
	// empty where there is no end.
	From, Before string
	// Does is what the storage system does by itself.
	Does string
	// Duties are the switches to set, by duty, as the configuration names them.
	Duties map[string]string
}

// Range of versions in words.
func (d VersionDuties) Range() string {
	switch {
	case d.From == "":
		return "before " + d.Before
	case d.Before == "":
		return d.From + " and later"
	}
	return d.From + " to before " + d.Before
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

// LonghornVersions is the table of Longhorn, read off longhorn-manager v1.7.0,
// v1.11.1 and v1.12.0 (controller/setting_controller.go,
// instance_manager_controller.go, share_manager_controller.go,
// kubernetes_endpoint_controller.go, kubernetes_pod_controller.go).
func LonghornVersions() []VersionDuties {
	return []VersionDuties{
		{
			Before: "1.7",
			Does:   "mounts RWX volumes in the host's network namespace, always, refuses danger-zone changes while volumes are attached, and has no status.applied",
			Duties: map[string]string{DutySettings: "guard", DutyPods: "off", DutyServices: "off", DutyEndpoints: "off", DutyWorkloads: "off", DutyRemount: "off"},
		},
		{
			From: "1.7", Before: "1.11",
			Does: "applies danger-zone settings within three retries of a change and then once an hour, writes status.applied when updates are issued, lets one network setting's sync restart for another, " +
				"and makes share-manager Services and Endpoints by storage-network-for-rwx-volume-enabled",
			Duties: map[string]string{DutySettings: "apply", DutyPods: "on", DutyServices: "on", DutyEndpoints: "on", DutyWorkloads: "on", DutyRemount: "off"},
		},
		{
			From:   "1.11",
			Does:   "the same by endpoint-network-for-rwx-volume, on an interface of its own (lhnet2)",
			Duties: map[string]string{DutySettings: "apply", DutyPods: "on", DutyServices: "on", DutyEndpoints: "on", DutyWorkloads: "on", DutyRemount: "off"},
		},
	}
}

// DutiesFor finds the range that a version (v1.7.0, 1.11.1-rc2) is in; ok is
// false where it can't be read.
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

// VersionBefore tells whether a version is earlier than another, by major and
// minor; known is false where one can't be read.
func VersionBefore(version, than string) (before, known bool) {
	is, ok := minorOf(version)
	limit, alsoOK := minorOf(than)
	return is < limit, ok && alsoOK
}

// minorOf makes a number of major and minor version that can be compared.
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
