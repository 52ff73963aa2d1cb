package settings

import "slices"

// SystemVersion is the setting in which Longhorn writes its version.
const SystemVersion Name = "current-longhorn-version"

// readOnly are the settings that Longhorn keeps for itself: its webhook refuses
// a change by anybody else. Source: longhorn-manager types/setting.go, ReadOnly,
// of 1.7 to 1.12.
var readOnly = []string{
	"crd-api-version",
	string(SystemVersion),
	"default-backing-image-manager-image",
	"default-engine-image",
	"default-instance-manager-image",
	"latest-longhorn-version",
	"stable-longhorn-versions",
	string(V2HugepageLimit), // in every version that has it
}

// ReadOnly tells whether the storage system writes a setting itself and lets
// nobody else. Of the catalog that is v2-data-engine-hugepage-limit alone.
func ReadOnly(name string) bool { return slices.Contains(readOnly, name) }
