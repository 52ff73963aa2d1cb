//lint:file-ignore SA1019 this file is for the readers of the deprecated API

package endpoints

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/addresses"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

const (
	// releaseRetry is how soon a release checks the mirrored slices again.
	releaseRetry = time.Second
	// mirrorManager is ControllerName in k8s.io/kubernetes pkg/controller/endpointslicemirroring.
	mirrorManager = "endpointslicemirroring-controller.k8s.io"
)

// Releaser returns published volumes to the storage system. Longhorn fills only Endpoints that a
// ShareManager owns, and creates missing ones only with the next server pod. So the object is
// kept, and its owner is restored.
//
// Source: longhorn-manager v1.7.2 to v1.12.0, kubernetes_endpoint_controller.go
// (reconcile) and share_manager_controller.go (createServiceAndEndpoint).
type Releaser struct {
	Names  longhorn.Names
	Client client.Writer
	// Live reads from the API server: after a release nothing corrects a mistake.
	Live client.Reader
	Log  *slog.Logger
}

// Start releases all volumes, and ends when that is done.
func (r *Releaser) Start(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, releaseRetry, true, func(ctx context.Context) (bool, error) {
		done, err := r.Once(ctx)
		if err != nil && ctx.Err() == nil {
			r.Log.Error("could not release the endpoints", "error", err)
		}
		return done, nil
	})
	return nil // the manager stops, or all is released
}

// Once releases all volumes. It returns false while work is left, and must then be
// called again.
func (r *Releaser) Once(ctx context.Context) (bool, error) {
	names, err := r.published(ctx)
	if err != nil {
		return false, err
	}
	var failed []error
	allDone := true
	for _, name := range names {
		done, err := r.Service(ctx, name)
		failed = append(failed, err)
		allDone = allDone && done
	}
	return allDone, errors.Join(failed...)
}

// published are the names of the Services that have objects of Fairlead's.
func (r *Releaser) published(ctx context.Context) ([]string, error) {
	var classic corev1.EndpointsList
	if err := r.Live.List(ctx, &classic, client.InNamespace(r.Names.Namespace)); err != nil {
		return nil, fmt.Errorf("listing Endpoints: %w", err)
	}
	var own discoveryv1.EndpointSliceList
	if err := r.Live.List(ctx, &own, client.InNamespace(r.Names.Namespace), client.MatchingLabels{discoveryv1.LabelManagedBy: rwx.SliceManager}); err != nil {
		return nil, fmt.Errorf("listing EndpointSlices: %w", err)
	}
	names := map[string]bool{}
	for i := range classic.Items {
		if touched(&classic.Items[i]) {
			names[classic.Items[i].Name] = true
		}
	}
	for i := range own.Items {
		names[own.Items[i].Labels[discoveryv1.LabelServiceName]] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// Service releases one volume. The slices stay until Kubernetes has mirrored the
// Endpoints object, so that the volume can be found all the time.
func (r *Releaser) Service(ctx context.Context, name string) (done bool, err error) {
	mirrored, err := r.classic(ctx, name, true)
	if err != nil {
		return false, err
	}
	return r.releaseSlices(ctx, name, mirrored)
}

// classic gives the Endpoints object to its ShareManager, and deletes Fairlead's if there is none. Without mirror,
// Kubernetes does not mirror the object into slices. It reports whether the object has addresses to mirror.
func (r *Releaser) classic(ctx context.Context, name string, mirror bool) (mirrored bool, err error) {
	owner, err := r.successor(ctx, name)
	if err != nil {
		return false, err
	}
	var have corev1.Endpoints
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: r.Names.Namespace, Name: name}, &have)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading Endpoints %s: %w", name, err)
	case owner == nil && managed(&have):
		if err := r.Client.Delete(ctx, &have, client.Preconditions{UID: &have.UID}); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("deleting Endpoints %s: %w", name, err)
		}
		r.Log.Info("deleted", "endpoints", name)
	case owner != nil && (touched(&have) || !mirror && ofShareManager(&have)):
		if err := r.handOver(ctx, &have, owner, mirror); err != nil {
			return false, err
		}
	}
	return owner != nil && len(have.Subsets) > 0, nil
}

// releaseSlices deletes the slices of one volume, with whenMirrored only once Kubernetes has
// mirrored the Endpoints object.
func (r *Releaser) releaseSlices(ctx context.Context, name string, whenMirrored bool) (done bool, err error) {
	var list discoveryv1.EndpointSliceList
	if err := r.Live.List(ctx, &list, client.InNamespace(r.Names.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name}); err != nil {
		return false, fmt.Errorf("listing EndpointSlices of Service %s: %w", name, err)
	}
	var own []*discoveryv1.EndpointSlice
	mirrored := false
	for i := range list.Items {
		switch list.Items[i].Labels[discoveryv1.LabelManagedBy] {
		case rwx.SliceManager:
			own = append(own, &list.Items[i])
		case mirrorManager:
			mirrored = mirrored || len(list.Items[i].Endpoints) > 0
		}
	}
	if len(own) > 0 && whenMirrored && !mirrored {
		return false, nil
	}
	for _, s := range own {
		if err := r.Client.Delete(ctx, s, client.Preconditions{UID: &s.UID}); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("deleting EndpointSlice %s: %w", s.Name, err)
		}
		r.Log.Info("deleted", "endpointslice", s.Name)
	}
	return true, nil
}

// successor is the ShareManager that owns the Endpoints object after Fairlead.
// It is nil if Longhorn publishes nothing: Services with a selector or a
// cluster IP, and volumes without a ShareManager.
func (r *Releaser) successor(ctx context.Context, name string) (*metav1.OwnerReference, error) {
	key := client.ObjectKey{Namespace: r.Names.Namespace, Name: name}
	var service corev1.Service
	if err := r.Live.Get(ctx, key, &service); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Service %s: %w", name, err)
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone || len(service.Spec.Selector) > 0 {
		return nil, nil
	}
	var sm longhorn.ShareManager
	if err := r.Live.Get(ctx, key, &sm); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading ShareManager %s: %w", name, err)
	}
	// As GetOwnerReferencesForShareManager of longhorn-manager makes it.
	return &metav1.OwnerReference{
		APIVersion: longhorn.GroupVersion.String(), Kind: longhorn.ShareManagerKind, Name: sm.Name, UID: sm.UID, Controller: ptr.To(false),
	}, nil
}

// handOver makes the ShareManager the owner of the Endpoints object. The addresses stay
// until Longhorn writes others. Without mirror, Kubernetes does not mirror them into slices.
func (r *Releaser) handOver(ctx context.Context, have *corev1.Endpoints, owner *metav1.OwnerReference, mirror bool) error {
	updated := have.DeepCopy()
	updated.OwnerReferences = []metav1.OwnerReference{*owner}
	if managed(have) {
		delete(updated.Labels, rwx.EndpointsManagedBy)
		delete(updated.Labels, corev1.IsHeadlessService)
	}
	delete(updated.Labels, discoveryv1.LabelSkipMirror)
	if !mirror {
		updated.Labels = addresses.Labelled(updated.Labels, map[string]string{discoveryv1.LabelSkipMirror: "true"})
	}
	if equality.Semantic.DeepEqual(have, updated) {
		return nil
	}
	if err := r.Client.Update(ctx, updated); err != nil {
		return fmt.Errorf("releasing Endpoints %s: %w", have.Name, err)
	}
	r.Log.Info("released to its ShareManager", "endpoints", have.Name, "mirrored", mirror)
	return nil
}

// managed reports whether the Endpoints object is Fairlead's.
func managed(e *corev1.Endpoints) bool {
	return e.Labels[rwx.EndpointsManagedBy] == rwx.SliceManager
}

// touched reports whether the object is Fairlead's, or Longhorn's with Fairlead's label.
// Longhorn's own objects are mirrored.
func touched(e *corev1.Endpoints) bool {
	return managed(e) || ofShareManager(e) && e.Labels[discoveryv1.LabelSkipMirror] == "true"
}

func ofShareManager(e *corev1.Endpoints) bool {
	return slices.ContainsFunc(e.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == longhorn.ShareManagerKind })
}
