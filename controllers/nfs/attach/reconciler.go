package attach

import (
	"context"
	"errors"
	"log/slog"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
)

const (
	// settle is the delay of a retry after a stale cache.
	settle = 50 * time.Millisecond
	// retry is the pause while an object or a server is missing.
	retry = 2 * time.Second
)

// Reconciler attaches and detaches: a request names a VolumeAttachment.
type Reconciler struct {
	// Client reads NFSServices, PersistentVolumes, Nodes and VolumeAttachments from a cache.
	Client client.Client
	// Live reads from the API server what is not cached yet.
	Live     client.Reader
	Pools    *pools.Pools
	Observer *pools.Observer
	Drivers  nfsreads.Drivers
	// Annotations says by driver how the node annotation <driver>/assigned-ip of the GKE driver is used.
	Annotations map[string]config.NodeAnnotations
	Clock       clock.PassiveClock
	Log         *slog.Logger
}

// Reconcile brings one VolumeAttachment in line.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var va storagev1.VolumeAttachment
	if err := r.Client.Get(ctx, request.NamespacedName, &va); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, ours := r.Drivers[va.Spec.Attacher]; !ours {
		return ctrl.Result{}, nil
	}
	err := r.settle(ctx, &va)
	var waits missingError
	switch {
	case kit.IsConflict(err):
		return ctrl.Result{RequeueAfter: settle}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case errors.As(err, &waits):
		return ctrl.Result{RequeueAfter: retry}, r.refuse(ctx, &va, waits)
	case errors.Is(err, nfsreads.ErrNoService):
		return ctrl.Result{}, r.refuse(ctx, &va, err)
	}
	return ctrl.Result{}, err
}

func (r *Reconciler) settle(ctx context.Context, va *storagev1.VolumeAttachment) error {
	if va.DeletionTimestamp != nil {
		return r.detach(ctx, va)
	}
	if va.Status.Attached && nfsreads.AddressOf(va) != "" && isMarked(va) {
		return nil // the pools have it from its event
	}
	return r.attach(ctx, va)
}

// attach gives the VolumeAttachment an address, unless it has one.
func (r *Reconciler) attach(ctx context.Context, va *storagev1.VolumeAttachment) error {
	service, err := r.serviceOf(ctx, va)
	if err != nil {
		return err
	}
	node, err := r.node(ctx, va.Spec.Attacher, va.Spec.NodeName)
	if err != nil {
		if nfsreads.AddressOf(va) == "" {
			return err
		}
		node = assign.Node{Name: va.Spec.NodeName} // it is gone, and the attachment keeps its address
	}
	if err := r.hold(ctx, va, service); err != nil {
		return err
	}
	address := nfsreads.AddressOf(va)
	if address == "" {
		if address, err = r.assign(ctx, service, node, string(va.UID)); err != nil {
			return err
		}
	}
	began := r.Clock.Now()
	if err := r.patchStatus(ctx, va, map[string]any{
		"attached": true, "attachmentMetadata": map[string]string{csi.AddressKey(va.Spec.Attacher): address}, "attachError": nil,
	}); err != nil {
		r.Pools.Withdraw(va.Spec.NodeName, string(va.UID))
		return err
	}
	r.Pools.Record(service, node, string(va.UID), address)
	r.Log.Info("attached", "volumeattachment", va.Name, "node", va.Spec.NodeName, "service", service.String(), "address", address, "took", r.Clock.Since(began))
	return nil
}

// serviceOf is the NFSService that a VolumeAttachment was attached to, or its volume names.
func (r *Reconciler) serviceOf(ctx context.Context, va *storagev1.VolumeAttachment) (types.NamespacedName, error) {
	volumes := nfsreads.VolumesOf(ctx, r.Client, r.Live)
	service, err := r.Drivers.ServiceOf(va, volumes)
	name := nfsreads.VolumeName(va)
	if apierrors.IsNotFound(err) {
		return service, missing("PersistentVolume %s does not exist", name)
	}
	if err != nil || nfsreads.AddressOf(va) != "" {
		return service, err
	}
	source, err := nfsreads.SourceOf(va, volumes)
	if err != nil {
		return service, err
	}
	list, err := r.volumes(ctx, source.Driver, source.VolumeHandle)
	if err != nil {
		return service, err
	}
	if err := r.checkHandle(list, service, name); err != nil {
		return service, missingError{err}
	}
	return service, nil
}

// detach releases the VolumeAttachment. The node has no mount any more, so nothing else is undone.
func (r *Reconciler) detach(ctx context.Context, va *storagev1.VolumeAttachment) error {
	if nfsreads.IsHeld(va) {
		if err := r.release(ctx, va); err != nil {
			return err
		}
		r.Log.Info("detached", "volumeattachment", va.Name, "node", va.Spec.NodeName)
	}
	r.Pools.Detach(va.Spec.NodeName, string(va.UID))
	return nil
}
