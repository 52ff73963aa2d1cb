package ondat

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// ReplaceAnnotation of a PVC allows that a ClusterIP that cannot be had again is
// replaced by another. Its value is the address that is given up, so that it holds once.
const ReplaceAnnotation = "fairlead.io/replace-address"

// serve brings the objects of a volume that has an NFS server in line, and publishes
// the mount endpoint once they are.
func (r *Reconciler) serve(ctx context.Context, f ondat.Finding) (time.Duration, error) {
	claim, own, err := r.check(ctx, f)
	if err != nil {
		return 0, err
	}
	want, err := r.want(f, claim, own)
	if err != nil {
		return 0, err
	}
	result, err := r.sync(ctx, f, want)
	if err == nil && result.State == frontend.WrongAddress {
		result, err = r.replaceService(ctx, f, claim, want, result)
	}
	if err == nil && result.State == frontend.Taken && claim.Annotations[ReplaceAnnotation] == want.ClusterIP.String() {
		want.ClusterIP = netip.Addr{}
		result, err = r.sync(ctx, f, want)
	}
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
		r.report(f, claim, ondat.Refusal{Reason: ondat.Refused, Message: fmt.Sprintf("%s is not published: Kubernetes refuses its objects: %s", f.Title(), err)})
		return 0, err
	case err != nil:
		return 0, err
	}
	switch result.State {
	case frontend.Foreign:
		return r.foreign(ctx, f, claim, want.Name, result.Message)
	case frontend.Taken:
		return 0, ondat.Refuse(ondat.AddressUnavailable, "%s. If no pod uses the volume any more, annotate PersistentVolumeClaim %s with %s=%s: the volume then gets another address",
			result.Message, claim.Name, ReplaceAnnotation, want.ClusterIP)
	}
	if !result.ClusterIP.IsValid() || want.ClusterIP.IsValid() && result.ClusterIP != want.ClusterIP {
		return again, nil // the Service is being deleted, and comes back with the published address
	}
	if publish.FamilyOf(result.ClusterIP) != publish.FamilyOf(f.Server.Addr()) {
		return 0, ondat.Refuse(ondat.WrongFamily, "%s: its clients have mounted %s, and its NFS server %s is of another address family: let Ondat's nodes use the family of the ClusterIP",
			f.Title(), result.ClusterIP, f.Server)
	}
	return 0, r.publish(ctx, f, claim, result.ClusterIP)
}

// want is the frontend of a volume: one backend, under an address that stays.
func (r *Reconciler) want(f ondat.Finding, claim *corev1.PersistentVolumeClaim, own *corev1.Service) (publish.Frontend, error) {
	address, name := f.RecordedIP(), ""
	if own != nil {
		name = own.Name
		if has, err := netip.ParseAddr(own.Spec.ClusterIP); err == nil && !address.IsValid() {
			address = has.Unmap()
		}
	} else {
		var err error
		if name, err = f.ServiceName(r.Config.ServiceName); err != nil {
			return publish.Frontend{}, err
		}
	}
	want := frontendOf(f, f.Namespace, name, metav1.OwnerReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: claim.Name, UID: claim.UID})
	want.ClusterIP, want.Backend, want.TargetPort = address, f.Server, f.Server.Port()
	return want, nil
}

func frontendOf(f ondat.Finding, namespace, name string, owner metav1.OwnerReference) publish.Frontend {
	return publish.Frontend{
		Namespace: namespace, Name: name, Slot: -1, Service: ondat.ServiceLabelValue(f.ID), Labels: map[string]string{ondat.VolumeIDLabel: f.ID},
		Port: nfs.DefaultPort, Owner: owner,
	}
}

// replaceService deletes a Service of the volume whose address differs from the
// published one: clients have mounted the published address. The control plane is read
// again first, to be sure that the Service's own address was never published.
func (r *Reconciler) replaceService(ctx context.Context, f ondat.Finding, claim *corev1.PersistentVolumeClaim, want publish.Frontend, before frontend.Result) (frontend.Result, error) {
	now, err := r.API.Volume(ctx, f.NamespaceID, f.ID)
	if err != nil {
		return before, err
	}
	if now.Labels[ondat.LabelMountEndpoint] != f.Labels[ondat.LabelMountEndpoint] {
		return before, fmt.Errorf("%s: its mount endpoint was changed meanwhile: Fairlead checks the volume again", f.Title())
	}
	r.Log.Warn("replacing a Service that has another address than the published one", "service", want.Name, "namespace", want.Namespace, "why", before.Message)
	r.event(claim, corev1.EventTypeWarning, "AddressRestored", "Publish",
		"Service %s has another address than %s, which the clients of %s mount: Fairlead deletes it and creates it with that address", want.Name, f.Labels[ondat.LabelMountEndpoint], f.Title())
	return r.Writer.Replace(ctx, want)
}

// foreign waits for the Service of an earlier PVC of that name, which the garbage
// collector deletes; any other Service is foreign.
func (r *Reconciler) foreign(ctx context.Context, f ondat.Finding, claim *corev1.PersistentVolumeClaim, name, message string) (time.Duration, error) {
	var s corev1.Service
	err := r.Live.Get(ctx, keyOf(f.Namespace, name), &s)
	switch {
	case apierrors.IsNotFound(err):
		return again, nil
	case err != nil:
		return 0, err
	case slices.ContainsFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "PersistentVolumeClaim" && o.Name == claim.Name && o.UID != claim.UID
	}):
		return again, nil
	}
	return 0, ondat.Refuse(ondat.ForeignService, "%s is not published: %s; or set ondat.serviceName, so that Services are named differently", f.Title(), message)
}

// publish sets the mount endpoint, if it is another. The Service and the slice are
// there: they were read, or the API server has answered that they are created.
func (r *Reconciler) publish(ctx context.Context, f ondat.Finding, claim *corev1.PersistentVolumeClaim, clusterIP netip.Addr) error {
	endpoint := ondat.MountEndpoint(clusterIP)
	if f.Labels[ondat.LabelMountEndpoint] != endpoint {
		switch err := r.API.SetMountEndpoint(ctx, f.Volume, endpoint); {
		case rest.IsCode(err, http.StatusNotFound):
			r.Log.Info("the volume was deleted before it could be published", "volume", f.ID)
			return nil // the next poll says so too
		case err != nil:
			return err
		}
		r.Log.Info("published", "volume", f.ID, "claim", keyOf(f.Namespace, f.PVC).String(), "endpoint", endpoint)
		r.event(claim, corev1.EventTypeNormal, "Published", "Publish", "%s is mounted at %s", f.Title(), endpoint)
		f = r.table.setEndpoint(f, endpoint)
	}
	r.table.settle(f, r.Clock.Now(), outcome{phase: published})
	return nil
}
