package services

import (
	"context"
	"fmt"
	"maps"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
)

// Finalizer of an NFSService keeps its Services until no node has it attached. It can't keep them in a namespace that is
// deleted: Kubernetes deletes them one by one.
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
		a, ok, err := r.Drivers.Attachment(&list.Items[i], nfsreads.VolumesOf(ctx, r.Client, r.Live))
		if err != nil {
			return nil, err
		}
		if ok && a.Address != "" && a.Service == service {
			nodes[a.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes)), nil
}
