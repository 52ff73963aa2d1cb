package ondat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// sync writes a frontend, then deletes the Endpoints that the released manager wrote. Kubernetes mirrors them into a slice,
// which would keep the address of that time. They go once for each volume and process: a crash may come in between.
func (r *Reconciler) sync(ctx context.Context, f ondat.Finding, want publish.Frontend) (frontend.Result, error) {
	result, err := r.Writer.Sync(ctx, want, nil)
	if err != nil || result.State != frontend.Published || result.Service == publish.Keep && r.table.wasSettled(f.ID) {
		return result, err
	}
	//lint:ignore SA1019 the released manager writes the deprecated API
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
	if err := r.Client.Delete(ctx, e); client.IgnoreNotFound(err) != nil {
		return result, fmt.Errorf("deleting Endpoints %s/%s of the released manager: %w", want.Namespace, want.Name, err)
	}
	return result, nil
}

func keyOf(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// check compares a volume with its PVC, and finds the Service that the PVC has for it.
// A finding against the volume is confirmed by a live read: the cache may be stale.
func (r *Reconciler) check(ctx context.Context, f ondat.Finding) (claim *corev1.PersistentVolumeClaim, own *corev1.Service, err error) {
	for _, reader := range []client.Reader{r.Client, r.Live} {
		if claim, err = readClaim(ctx, reader, f); err == nil {
			own, err = r.ownService(ctx, f, claim)
		}
		if err == nil {
			err = f.CheckClaim(claim, own != nil)
		}
		if !errors.As(err, &ondat.Refusal{}) {
			break
		}
	}
	return claim, own, err
}

func readClaim(ctx context.Context, reader client.Reader, f ondat.Finding) (*corev1.PersistentVolumeClaim, error) {
	if f.PVC == "" || f.Namespace == "" {
		return nil, nil
	}
	var claim corev1.PersistentVolumeClaim
	err := reader.Get(ctx, keyOf(f.Namespace, f.PVC), &claim)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", f.Namespace, f.PVC, err)
	}
	return &claim, nil
}

// ownService returns the Service that the PVC owns for this volume, whatever its name:
// the released manager, or another setting of ondat.serviceName, may have created it.
// If there are two, the one with the published address counts.
func (r *Reconciler) ownService(ctx context.Context, f ondat.Finding, claim *corev1.PersistentVolumeClaim) (own *corev1.Service, err error) {
	if claim == nil {
		return nil, nil
	}
	services, err := r.services(ctx, f, client.HasLabels{ondat.VolumeIDLabel}, client.UnsafeDisableDeepCopy) // read only
	if err != nil {
		return nil, err
	}
	var other error
	for i := range services {
		s := &services[i]
		if !slices.ContainsFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == claim.UID }) {
			continue
		}
		switch id := s.Labels[ondat.VolumeIDLabel]; {
		case id == f.ID:
			if own == nil || s.Spec.ClusterIP == f.RecordedIP().String() {
				own = s
			}
		case r.table.exists(id):
			other = ondat.Refuse(ondat.ClaimOfTwoVolumes, "%s is not published: PersistentVolumeClaim %s/%s has Service %s for Ondat volume %s: delete the volume that is not in use", f.Title(), f.Namespace, f.PVC, s.Name, id)
		}
	}
	if own != nil {
		other = nil
	}
	return own, other
}

// services with a volume's label in the namespace of its PVC. Services of the released
// manager are not in the cache: where a volume is published and none is found, the
// API server is asked.
func (r *Reconciler) services(ctx context.Context, f ondat.Finding, options ...client.ListOption) ([]corev1.Service, error) {
	var list corev1.ServiceList
	if err := r.Client.List(ctx, &list, append(options, client.InNamespace(f.Namespace))...); err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	known := slices.ContainsFunc(list.Items, func(s corev1.Service) bool { return s.Labels[ondat.VolumeIDLabel] == f.ID })
	if known || f.Labels[ondat.LabelMountEndpoint] == "" {
		return list.Items, nil
	}
	var live corev1.ServiceList
	if err := r.Live.List(ctx, &live, client.InNamespace(f.Namespace), client.MatchingLabels{ondat.VolumeIDLabel: f.ID}); err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	return append(list.Items, live.Items...), nil
}
