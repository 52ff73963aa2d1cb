package ondat

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// ReplaceAnnotation of a PVC allows that a ClusterIP that cannot be had again is
// replaced by another. Its value is the address that is given up, so that it holds once.
const ReplaceAnnotation = "fairlead.io/replace-address"

// errDeleting ends by itself.
var errDeleting = errors.New("waiting until the old Service is deleted")

// serve publishes a volume that has an NFS server: first its Service and slices, then
// the mount endpoint. If the volume does not go with its PVC, it is withdrawn.
func (r *Reconciler) serve(ctx context.Context, f ondat.Finding, claim *corev1.PersistentVolumeClaim, s services) error {
	want, err := f.Frontend(claim, s.ofClaim(claim), r.Config.ServiceName)
	if err != nil && r.outcomes[f.ID].phase != ignored { // the cache may be stale
		if claim, err = readClaim(ctx, r.Live, f); err != nil {
			return err
		}
		want, err = f.Frontend(claim, s.ofClaim(claim), r.Config.ServiceName)
	}
	if err != nil {
		return r.withdraw(ctx, f, s, err)
	}
	result, err := r.sync(ctx, f, want)
	if err == nil && result.State == frontend.Taken && claim.Annotations[ReplaceAnnotation] == want.ClusterIP.String() {
		want.ClusterIP = netip.Addr{}
		result, err = r.sync(ctx, f, want)
	}
	switch {
	case kit.IsRefused(err):
		return ondat.Refuse("Refused", "%s is not published: Kubernetes refuses its objects: %s", f.Title(), err)
	case err != nil:
		return err
	case result.State == frontend.Taken:
		return ondat.Refuse("AddressUnavailable", "%s. If no pod uses the volume any more, annotate PersistentVolumeClaim %s with %s=%s: the volume then gets another address",
			result.Message, claim.Name, ReplaceAnnotation, want.ClusterIP)
	case result.State == frontend.Foreign, result.State == frontend.WrongAddress:
		return ondat.Refuse(string(result.State), "%s is not published: %s", f.Title(), result.Message)
	case want.ClusterIP.IsValid() && result.ClusterIP != want.ClusterIP:
		return errDeleting // the Service comes back with the published address
	case publish.FamilyOf(result.ClusterIP) != publish.FamilyOf(f.Server.Addr()):
		return ondat.Refuse("WrongFamily", "%s: its clients have mounted %s, and its NFS server %s is of another address family: let Ondat's nodes use the family of the ClusterIP",
			f.Title(), result.ClusterIP, f.Server)
	}
	return r.announce(ctx, f, claim, ondat.MountEndpoint(result.ClusterIP))
}

// announce sets the mount endpoint, if it is another. The Service and the slice are
// there: they were read, or the API server has answered that they are created.
func (r *Reconciler) announce(ctx context.Context, f ondat.Finding, claim *corev1.PersistentVolumeClaim, endpoint string) error {
	if f.Labels[ondat.LabelMountEndpoint] == endpoint {
		return nil
	}
	if err := r.API.SetMountEndpoint(ctx, f.Volume, endpoint); err != nil {
		return err
	}
	f.Labels[ondat.LabelMountEndpoint] = endpoint // until the next list
	r.Log.Info("published", "volume", f.ID, "claim", f.Namespace+"/"+f.PVC, "endpoint", endpoint)
	r.event(claim, corev1.EventTypeNormal, "Published", fmt.Sprintf("%s is mounted at %s", f.Title(), endpoint))
	return nil
}
