package catalog

// DisableSnapshotPurge keeps Longhorn from purging snapshots. It refuses that
// while auto-cleanup-system-generated-snapshot is on, which the value alone
// can't tell. Source: longhorn-manager datastore/longhorn.go, ValidateSetting.
const DisableSnapshotPurge Name = "disable-snapshot-purge"

// AutoCleanup is Longhorn's setting that purges snapshots. It is no danger zone,
// and of Fairlead's matter only where it contradicts DisableSnapshotPurge.
const AutoCleanup Name = "auto-cleanup-system-generated-snapshot"

func purgeFamily() []Definition {
	return []Definition{{
		Name: DisableSnapshotPurge, Default: "false", Normalize: normalizeBool, Since: "1.6", DangerZone: true, Gate: AtOnce,
		Affects: "no pod: purges of snapshots, from the next one on",
	}}
}
