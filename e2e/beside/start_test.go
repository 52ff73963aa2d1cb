package beside

import (
	"fmt"
	"slices"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// TestSharedVolumeIsServed takes an RWX volume through its life on the cluster network.
func TestSharedVolumeIsServed(t *testing.T) {
	eachWay(t, func(s scene) {
		s.volume("pvc-life", "rwx")
		s.must(eventually.Until(s.ctx, "the volume to be mountable", attachTimeout, func() error { return s.Mountable(s.ctx, "pvc-life") }))
		s.must(s.waitAttachment("pvc-life", true))
		s.must(s.Manager.Restart(s.ctx))
		s.must(s.Mountable(s.ctx, "pvc-life"))
		s.release("pvc-life")
		s.must(s.waitAttachment("pvc-life", false))
		s.must(s.DeleteVolume(s.ctx, "pvc-life"))
	})
}

// waitAttachment waits until Kubernetes has a volume attached on the workloads' node, and Longhorn
// has the ticket of its CSI driver; or until Kubernetes' attachment and all tickets are gone. Longhorn
// and Fairlead take a volume with any ticket for attached, also with the ticket of its share manager.
func (s scene) waitAttachment(volume string, attached bool) error {
	return eventually.Until(s.ctx, fmt.Sprintf("%s to be attached by the CSI driver: %v", volume, attached), attachTimeout, func() error {
		var list storagev1.VolumeAttachmentList
		if err := s.Client.List(s.ctx, &list); err != nil {
			return err
		}
		of := slices.DeleteFunc(list.Items, func(o storagev1.VolumeAttachment) bool { return *o.Spec.Source.PersistentVolumeName != volume })
		if attached && (len(of) != 1 || !of[0].Status.Attached) || !attached && len(of) > 0 {
			return fmt.Errorf("attachments of Kubernetes: %v", of)
		}
		tickets := &unstructured.Unstructured{}
		tickets.SetGroupVersionKind(longhorn.GroupVersion.WithKind("VolumeAttachment"))
		if err := s.Client.Get(s.ctx, key(volume), tickets); err != nil {
			return err
		}
		all, _, err := unstructured.NestedMap(tickets.Object, "spec", "attachmentTickets")
		if _, found := all[standin.TicketID(volume, s.Manager.pod.Spec.NodeName)]; err == nil && (attached && !found || !attached && len(all) > 0) {
			err = fmt.Errorf("attachment tickets of Longhorn: %v", all)
		}
		return err
	})
}
