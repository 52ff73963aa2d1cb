package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// harmless are the settings of Longhorn 1.7 to 1.12.1 outside the danger zone, and of the commit 5ddaa369f after it. Source:
// longhorn-manager types/setting.go of v1.7.2, v1.8.1, v1.9.0, v1.10.0, v1.11.1, v1.12.1 and 5ddaa369f.
var harmless = strings.Fields(`
allow-collecting-longhorn-usage-metrics allow-empty-disk-selector-volume allow-empty-node-selector-volume
allow-live-engine-upgrade-on-same-image-commit allow-recurring-job-while-volume-detached
allow-volume-creation-with-degraded-availability auto-cleanup-recurring-job-backup-snapshot auto-cleanup-snapshot-after-on-demand-backup-completed
auto-cleanup-system-generated-snapshot auto-cleanup-when-delete-backup auto-salvage backing-image-cleanup-wait-interval
backing-image-recovery-wait-interval backup-compression-method backup-concurrent-limit backup-execution-timeout backup-target
backup-target-credential-secret backupstore-poll-interval concurrent-automatic-engine-upgrade-per-node-limit
concurrent-volume-backup-restore-per-node-limit crd-api-version create-default-disk-labeled-nodes csi-allowed-topology-keys
csi-storage-capacity-tracking current-longhorn-version data-engine-log-flags data-engine-log-level default-backing-image-manager-image
default-backup-block-size default-control-path default-data-locality default-data-path default-engine-image default-instance-manager-image
default-longhorn-static-storage-class default-min-number-of-backing-image-copies default-nvme-tcp-nr-io-queues default-replica-count default-ublk-number-of-queue
default-ublk-queue-depth deleting-confirmation-flag detach-manually-attached-volumes-when-cordoned disable-revision-counter
disable-scheduling-on-cordoned-node engine-replica-timeout failed-backup-ttl fast-replica-rebuild-enabled freeze-filesystem-for-snapshot
kubernetes-cluster-autoscaler-enabled kubernetes-metrics-server-metrics-enabled latest-longhorn-version log-level long-grpc-timeout manager-url
node-disk-health-monitoring node-down-pod-deletion-policy node-drain-policy offline-replica-rebuilding orphan-auto-deletion
orphan-resource-auto-deletion orphan-resource-auto-deletion-grace-period recurring-failed-jobs-history-limit recurring-job-max-retention
recurring-successful-jobs-history-limit registry-secret remove-snapshots-during-filesystem-trim replica-auto-balance
replica-auto-balance-disk-pressure-percentage replica-disk-soft-anti-affinity replica-file-sync-http-client-timeout
replica-rebuild-concurrent-sync-limit replica-rebuilding-bandwidth-limit replica-replenishment-wait-interval replica-soft-anti-affinity
replica-zone-soft-anti-affinity restore-concurrent-limit restore-volume-recurring-jobs rwx-volume-fast-failover snapshot-count-warning-threshold
snapshot-data-integrity snapshot-data-integrity-cronjob snapshot-data-integrity-immediate-check-after-snapshot-creation
snapshot-heavy-task-concurrent-limit snapshot-max-count stable-longhorn-versions storage-minimal-available-percentage
storage-over-provisioning-percentage storage-reserved-percentage-for-default-disk support-bundle-failed-history-limit support-bundle-manager-image
support-bundle-node-collection-timeout system-managed-pods-image-pull-policy upgrade-checker upgrade-responder-url
v2-data-engine-fast-replica-rebuilding v2-data-engine-log-flags v2-data-engine-log-level v2-data-engine-snapshot-data-integrity`)

// Unknown returns the storage system's settings that Fairlead does not know, sorted.
// Later versions may have these in the danger zone, which no object shows.
func Unknown(system map[Name]string) []Name {
	var unknown []Name
	for name := range system {
		if _, known := Lookup(string(name)); !known && !slices.Contains(harmless, string(name)) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// UnknownMessage names the unknown settings, and says what to do.
func UnknownMessage(unknown []Name) string {
	return fmt.Sprintf("Longhorn has settings that this Fairlead does not know, perhaps of the danger zone: %s. Upgrade Fairlead: until then Longhorn alone judges and applies them",
		FirstOf(Texts(unknown)))
}
