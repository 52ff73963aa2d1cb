package catalog

// DisableSnapshotPurge keeps Longhorn from purging snapshots. Longhorn refuses the value "true" while
// AutoCleanup is on. Source: longhorn-manager datastore/longhorn.go, ValidateSetting.
const DisableSnapshotPurge Name = "disable-snapshot-purge"

// AutoCleanup is Longhorn's setting that purges snapshots. It is outside the danger zone:
// Fairlead reads it only to detect the conflict with DisableSnapshotPurge.
const AutoCleanup Name = "auto-cleanup-system-generated-snapshot"

func purgeFamily() []Definition {
	return []Definition{{
		Name: DisableSnapshotPurge, Default: "false", Normalize: normalizeBool, Form: boolForm, Since: "1.6", DangerZone: true, Gate: AtOnce,
		Affects: "no pod: purges of snapshots, from the next one on",
	}}
}
