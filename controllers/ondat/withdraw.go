package ondat

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
)

// withdraw takes the server's address out of the slices of a volume that has no
// server now. The Service and its ClusterIP stay: they belong to the PVC.
func (r *Reconciler) withdraw(ctx context.Context, f ondat.Finding) error {
	services, err := r.services(ctx, f, client.MatchingLabels{ondat.VolumeIDLabel: f.ID})
	if err != nil {
		return err
	}
	for i := range services {
		s := &services[i]
		owner := slices.IndexFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "PersistentVolumeClaim" })
		address, err := netip.ParseAddr(s.Spec.ClusterIP)
		if owner < 0 || err != nil || s.DeletionTimestamp != nil {
			continue
		}
		empty := frontendOf(f, s.Namespace, s.Name, s.OwnerReferences[owner])
		empty.ClusterIP, empty.TargetPort = address.Unmap(), targetPort(s)
		result, err := r.sync(ctx, f, empty)
		if err != nil {
			return err
		}
		if result.Moved {
			r.Log.Info("withdrawn: the volume has no NFS server now", "volume", f.ID, "service", s.Name, "namespace", s.Namespace, "state", f.State)
		}
	}
	return nil
}

// targetPort of a Service, which stays until there is another server.
func targetPort(s *corev1.Service) uint16 {
	if len(s.Spec.Ports) == 1 && s.Spec.Ports[0].TargetPort.IntVal > 0 {
		return uint16(s.Spec.Ports[0].TargetPort.IntVal)
	}
	return 0
}

// clearLabel takes back the mount endpoint of a detached volume whose PVC is gone, as
// with reclaim policy Retain: its ClusterIP went with the PVC and may be given to
// another Service. An empty mount endpoint is the field's default (openapi.yaml).
func (r *Reconciler) clearLabel(ctx context.Context, f ondat.Finding) (ondat.Finding, error) {
	if f.Labels[ondat.LabelMountEndpoint] == "" || f.AttachmentType != ondat.Detached {
		return f, nil
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		if claim, err := readClaim(ctx, reader, f); err != nil || claim != nil {
			return f, err
		}
	}
	err := r.API.SetMountEndpoint(ctx, f.Volume, "")
	if class := rest.Class(err); class == "bad_request" || class == "invalid_state" || class == "not_found" {
		r.Log.Info("the control plane keeps the mount endpoint of a detached volume", "volume", f.ID, "why", err.Error())
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("clearing the mount endpoint of %s, whose PersistentVolumeClaim is gone: %w", f.Title(), err)
	}
	r.Log.Info("cleared the mount endpoint: the PersistentVolumeClaim is gone", "volume", f.ID, "was", f.Labels[ondat.LabelMountEndpoint])
	return r.table.setEndpoint(f, ""), nil
}
