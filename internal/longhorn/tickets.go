package longhorn

import "cmp"

// ticketPurposes are the types of attachment tickets (longhorn-manager v1.12.0, k8s/pkg/apis/longhorn/v1beta2/volumeattachment.go), and for what
// each attaches a volume. Those of workloads have no purpose of their own.
var ticketPurposes = map[string]string{
	"csi-attacher": "", "share-manager-controller": "",
	"longhorn-api": "Longhorn's UI or API", "backup-controller": "a backup", "snapshot-controller": "a snapshot",
	"volume-restore-controller": "a restore", "volume-clone-controller": "a clone", "volume-expansion-controller": "an expansion",
	"volume-eviction-controller": "an eviction of replicas", "volume-rebuilding-controller": "a rebuild of replicas",
	"salvage-controller": "a salvage", "longhorn-upgrader": "an upgrade", "backing-image-data-source-controller": "the export of a backing image",
	"bim-ds-controller": "the export of a backing image",
}

// Purpose of a ticket, where no workload uses the volume by it; "" if one does.
func (t AttachmentTicket) Purpose() string {
	purpose, known := ticketPurposes[t.Type]
	if !known && t.Type != "" {
		return cmp.Or(purpose, t.Type)
	}
	return purpose
}
