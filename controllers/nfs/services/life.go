package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// Finalizer of an NFSService keeps its Services until no node has it attached.
const Finalizer = "fairlead.io/nfs-attachments"

// life keeps the finalizer, and removes it once the service is deleted and unused.
// It reports whether the service is gone.
func (p *pass) life(ctx context.Context) (bool, error) {
	before := p.service.DeepCopy()
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if p.service.DeletionTimestamp == nil {
		if !controllerutil.AddFinalizer(p.service, Finalizer) {
			return false, nil
		}
		return false, p.Client.Patch(ctx, p.service, patch)
	}
	if !controllerutil.ContainsFinalizer(p.service, Finalizer) {
		return true, nil
	}
	users, err := p.nodesOf(ctx, p.key)
	if err != nil {
		return false, fmt.Errorf("reading who has NFSService %s attached: %w", p.key, err)
	}
	if len(users) > 0 {
		p.users = users
		return false, nil
	}
	controllerutil.RemoveFinalizer(p.service, Finalizer)
	if err := p.Client.Patch(ctx, p.service, patch); client.IgnoreNotFound(err) != nil {
		return false, err
	}
	p.Log.Info("released a deleted NFSService", "service", p.key.String())
	return true, nil
}

// nodesOf are the nodes that have a volume of the service attached, read live.
func (r *Reconciler) nodesOf(ctx context.Context, service types.NamespacedName) ([]string, error) {
	var list storagev1.VolumeAttachmentList
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, err
	}
	nodes := map[string]bool{}
	for i := range list.Items {
		va := &list.Items[i]
		if pools.AddressOf(va) == "" || pools.Detached(va) {
			continue
		}
		of, known, err := r.attachedTo(ctx, va)
		if err != nil {
			return nil, err
		}
		if known && of == service {
			nodes[va.Spec.NodeName] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes)), nil
}

// attachedTo is the service of an attachment; false if it is unknown. An attachment of
// a driver that is no longer served counts until its node releases it: no attacher
// removes its finalizer.
func (r *Reconciler) attachedTo(ctx context.Context, va *storagev1.VolumeAttachment) (types.NamespacedName, bool, error) {
	_, served := r.Drivers[va.Spec.Attacher]
	if of, err := volume.ParseService(va.Annotations[pools.ServiceAnnotation]); err == nil {
		return of, served || va.DeletionTimestamp == nil, nil
	}
	if !served {
		return types.NamespacedName{}, false, nil
	}
	source, pv, err := pools.Source(ctx, r.Client, va)
	if apierrors.IsNotFound(err) {
		source, pv, err = pools.Source(ctx, r.Live, va)
	}
	if err == nil {
		of, err := r.Drivers.ServiceOf(source, pv)
		return of, err == nil, nil
	}
	if apierrors.IsNotFound(err) || errors.Is(err, pools.ErrNoService) {
		err = nil
	}
	return types.NamespacedName{}, false, err
}
