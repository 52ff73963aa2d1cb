package standin

import (
	"context"
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// createTickets makes Longhorn's own VolumeAttachment of a volume (handleVolumeAttachmentCreation in controller/volume_controller.go).
func (l Longhorn) createTickets(ctx context.Context, volume *unstructured.Unstructured) error {
	o := l.object("VolumeAttachment", volume.GetName())
	o.SetLabels(map[string]string{volumeLabel: volume.GetName()})
	o.SetOwnerReferences(volumeOwner(volume))
	o.Object["spec"] = map[string]any{"volume": volume.GetName(), "attachmentTickets": map[string]any{}}
	return l.create(ctx, o)
}

// takeTicket follows ControllerPublishVolume in csi/controller_server.go: the volume is asked for before it is attached.
func (l Longhorn) takeTicket(ctx context.Context, volume, node string) error {
	tickets := ticket(TicketID(volume, node), "csi-attacher", node)
	if err := unstructured.SetNestedField(tickets, "", TicketID(volume, node), "parameters", "lastAttachedBy"); err != nil {
		return fmt.Errorf("writing a ticket: %w", err)
	}
	return l.patchTickets(ctx, volume, tickets)
}

// TicketID is how the CSI driver names its ticket (generateAttachmentID in csi/controller_server.go).
func TicketID(volume, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(volume+longhorn.DefaultNames().Driver+node)))
}

// takeServerTicket follows createShareManagerAttachmentTicket in controller/share_manager_controller.go: the volume is attached
// where its server runs.
func (l Longhorn) takeServerTicket(ctx context.Context, volume, node string) error {
	const attacher = "share-manager-controller"
	return l.patchTickets(ctx, volume, ticket(attacher+"-"+volume, attacher, node))
}

func ticket(id, attacher, node string) map[string]any {
	return map[string]any{id: map[string]any{
		"id": id, "type": attacher, "nodeID": node, "parameters": map[string]any{"disableFrontend": "false"}, "generation": int64(0),
	}}
}

// returnTickets follows ControllerUnpublishVolume, for all nodes at once.
func (l Longhorn) returnTickets(ctx context.Context, volume string) error {
	return l.patchTickets(ctx, volume, nil)
}

func (l Longhorn) patchTickets(ctx context.Context, volume string, tickets map[string]any) error {
	return l.patch(ctx, l.object("VolumeAttachment", volume), map[string]any{"spec": map[string]any{"attachmentTickets": tickets}})
}

// hasTickets: the volume is asked for, attached or not.
func hasTickets(attachment *unstructured.Unstructured) bool {
	tickets, _, _ := unstructured.NestedMap(attachment.Object, "spec", "attachmentTickets")
	return len(tickets) > 0
}
