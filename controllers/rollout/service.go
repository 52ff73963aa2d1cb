package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/mutators"
)

// replaceService moves the Service of a detached volume to its network. A headless Service that
// stays headless is changed in place. A cluster IP can't be changed: the Service is kept in the
// record, deleted and recreated. After a crash, the next reconcile recreates it.
func (r *Reconciler) replaceService(ctx context.Context, seen storage.Service, record rollout.Record, request storage.Request) error {
	old, err := r.Live.ServiceObject(ctx, seen.Name)
	if err != nil {
		return err
	}
	if string(old.UID) != seen.UID || old.ResourceVersion != seen.ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("services"), seen.Name, errServiceMoved)
	}
	fresh, err := renewed(r.Profile, old, record, request)
	if err != nil {
		return err
	}
	if old.Spec.ClusterIP == corev1.ClusterIPNone && fresh.Spec.ClusterIP == corev1.ClusterIPNone {
		before := old.DeepCopy()
		old.Annotations, old.Spec.Selector = fresh.Annotations, fresh.Spec.Selector
		if err := r.Client.Patch(ctx, old, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("changing Service %s: %w", seen.Name, err)
		}
		r.Log.Info("changed the network of a detached volume's Service", "service", seen.Name, "network", fresh.Annotations[storage.NetworkAnnotation])
		return nil
	}
	if err := r.intend(ctx, old); err != nil {
		return err
	}
	uid, version := types.UID(seen.UID), seen.ResourceVersion
	if err := r.Client.Delete(ctx, old, client.Preconditions{UID: &uid, ResourceVersion: &version}); err != nil {
		return fmt.Errorf("replacing Service %s: %w", seen.Name, err)
	}
	return r.finishReplacing(ctx)
}

var (
	errServiceMoved = errors.New("the Service has changed since the decision")
	errNotFinished  = errors.New("another Service is being replaced")
	errTerminating  = errors.New("the old Service still terminates")
)

// intend keeps a Service in the record before its deletion. An earlier kept Service, which the
// cache may not show yet, comes first.
func (r *Reconciler) intend(ctx context.Context, old *corev1.Service) error {
	text, err := json.Marshal(kept(old))
	if err != nil {
		return fmt.Errorf("keeping Service %s: %w", old.Name, err)
	}
	return r.writeRecord(ctx, func(status *v1alpha1.NetworkRolloutStatus) error {
		if status.Replacing != "" && status.Replacing != string(text) {
			return apierrors.NewConflict(corev1.Resource("services"), old.Name, errNotFinished)
		}
		status.Replacing = string(text)
		return nil
	})
}

// finishReplacing recreates the kept Service on its network by the present record, unless the
// Service exists again, and removes it from the record.
func (r *Reconciler) finishReplacing(ctx context.Context) error {
	return r.writeRecord(ctx, func(status *v1alpha1.NetworkRolloutStatus) error {
		if status.Replacing == "" {
			return nil
		}
		var old corev1.Service
		if err := json.Unmarshal([]byte(status.Replacing), &old); err != nil {
			return fmt.Errorf("reading status.replacing of NetworkRollout %s: %w", r.Profile.Name, err)
		}
		record, err := cluster.RecordOf(&v1alpha1.NetworkRollout{Status: *status})
		if err != nil && !errors.Is(err, cluster.ErrNotRecorded) {
			return err
		}
		request, err := r.requestOf(ctx, old.Labels[r.Profile.VolumeLabel])
		if err != nil {
			return err
		}
		fresh, err := renewed(r.Profile, &old, record, request)
		if err != nil {
			return err
		}
		switch err := r.Client.Create(ctx, fresh); {
		case err == nil:
			r.Log.Info("replaced the Service of a detached volume", "service", old.Name, "network", fresh.Annotations[storage.NetworkAnnotation])
		case !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("replacing Service %s: %w", old.Name, err)
		default: // the storage system's, or the old one that was not deleted yet
			if err := r.mustStay(ctx, old.Name); err != nil {
				return err
			}
		}
		status.Replacing = ""
		return nil
	})
}

// mustStay returns a conflict for a Service that terminates: its deletion, which is an event,
// would leave no Service.
func (r *Reconciler) mustStay(ctx context.Context, name string) error {
	service, err := r.Live.ServiceObject(ctx, name)
	if apierrors.IsNotFound(err) || err == nil && service.DeletionTimestamp != nil {
		return apierrors.NewConflict(corev1.Resource("services"), name, errTerminating)
	}
	return err
}

// kept is the part of a Service that outlives its replacement: all but allocated values.
func kept(old *corev1.Service) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: old.Namespace, Name: old.Name, Labels: old.Labels,
			Annotations: maps.Clone(old.Annotations), OwnerReferences: old.OwnerReferences,
		},
		Spec: corev1.ServiceSpec{
			Type: old.Spec.Type, Ports: old.Spec.Ports, Selector: old.Spec.Selector,
			SessionAffinity: old.Spec.SessionAffinity, PublishNotReadyAddresses: old.Spec.PublishNotReadyAddresses,
		},
	}
	if old.Spec.ClusterIP == corev1.ClusterIPNone {
		service.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return service
}

// renewed is the Service as the storage system would create it now, shaped by the rule of the
// webhook, which may be down.
func renewed(profile storage.Profile, old *corev1.Service, record rollout.Record, request storage.Request) (*corev1.Service, error) {
	fresh := kept(old)
	if fresh.Annotations == nil {
		fresh.Annotations = map[string]string{}
	}
	if text, ok := fresh.Annotations[storage.SelectorAnnotation]; ok && len(fresh.Spec.Selector) == 0 {
		if err := json.Unmarshal([]byte(text), &fresh.Spec.Selector); err != nil {
			return nil, fmt.Errorf("annotation %s of Service %s: %w", storage.SelectorAnnotation, old.Name, err)
		}
	}
	if len(fresh.Spec.Selector) > 0 { // without a selector, the rule restores it
		fresh.Spec.ClusterIP = ""
	}
	for _, key := range []string{storage.SelectorAnnotation, storage.NetworkAnnotation, storage.AddressesAnnotation, storage.MACAnnotation} {
		delete(fresh.Annotations, key)
	}
	return shaped(profile, fresh, record, request)
}

func shaped(profile storage.Profile, service *corev1.Service, record rollout.Record, request storage.Request) (*corev1.Service, error) {
	data, err := json.Marshal(service)
	if err != nil {
		return nil, fmt.Errorf("encoding Service %s: %w", service.Name, err)
	}
	var view mutators.Service
	if err := json.Unmarshal(data, &view); err != nil {
		return nil, fmt.Errorf("reading Service %s: %w", service.Name, err)
	}
	result := mutators.MutateService(profile, view, nil, record, request)
	if len(result.Patch) == 0 {
		return service, nil
	}
	operations, err := json.Marshal(result.Patch)
	if err != nil {
		return nil, fmt.Errorf("shaping Service %s: %w", service.Name, err)
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, fmt.Errorf("shaping Service %s: %w", service.Name, err)
	}
	if data, err = patch.Apply(data); err != nil {
		return nil, fmt.Errorf("shaping Service %s: %w", service.Name, err)
	}
	var shaped corev1.Service
	if err := json.Unmarshal(data, &shaped); err != nil {
		return nil, fmt.Errorf("shaping Service %s: %w", service.Name, err)
	}
	return &shaped, nil
}
