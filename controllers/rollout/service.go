package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// replaceService makes the Service of a detached volume anew, since a cluster
// IP can't be changed. Should Fairlead crash in between, the storage system
// creates the Service when it next attaches the volume, as it does for a new one.
func (r *Reconciler) replaceService(ctx context.Context, seen storage.Service, record settings.Record, request storage.Request) error {
	old, err := r.Live.ServiceObject(ctx, seen.Name)
	if err != nil {
		return err
	}
	fresh, err := renewed(old, record, request)
	if err != nil {
		return err
	}
	uid, version := types.UID(seen.UID), seen.ResourceVersion
	if err := r.Client.Delete(ctx, old, client.Preconditions{UID: &uid, ResourceVersion: &version}); err != nil {
		return fmt.Errorf("replacing Service %s: %w", seen.Name, err)
	}
	if err := r.Client.Create(ctx, fresh); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("replacing Service %s: %w", seen.Name, err)
	}
	r.Log.Info("replaced the Service of a detached volume", "service", seen.Name, "network", fresh.Annotations[storage.NetworkAnnotation])
	return nil
}

// renewed is the Service as the storage system would create it today: what was
// recorded and allocated is gone, and the same rule as in the webhook has
// shaped it, so that a webhook that is away does not matter.
func renewed(old *corev1.Service, record settings.Record, request storage.Request) (*corev1.Service, error) {
	fresh := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: old.Namespace, Name: old.Name, Labels: old.Labels,
			Annotations: map[string]string{}, OwnerReferences: old.OwnerReferences,
		},
		Spec: corev1.ServiceSpec{
			Type: old.Spec.Type, Ports: old.Spec.Ports, Selector: old.Spec.Selector,
			SessionAffinity: old.Spec.SessionAffinity, PublishNotReadyAddresses: old.Spec.PublishNotReadyAddresses,
		},
	}
	for key, value := range old.Annotations {
		fresh.Annotations[key] = value
	}
	if text, ok := fresh.Annotations[storage.SelectorAnnotation]; ok && len(fresh.Spec.Selector) == 0 {
		if err := json.Unmarshal([]byte(text), &fresh.Spec.Selector); err != nil {
			return nil, fmt.Errorf("annotation %s of Service %s: %w", storage.SelectorAnnotation, old.Name, err)
		}
	}
	for _, key := range []string{storage.SelectorAnnotation, storage.NetworkAnnotation, storage.AddressesAnnotation, storage.MACAnnotation} {
		delete(fresh.Annotations, key)
	}
	return shaped(fresh, record, request)
}

func shaped(service *corev1.Service, record settings.Record, request storage.Request) (*corev1.Service, error) {
	data, err := json.Marshal(service)
	if err != nil {
		return nil, fmt.Errorf("encoding Service %s: %w", service.Name, err)
	}
	var view mutators.Service
	if err := json.Unmarshal(data, &view); err != nil {
		return nil, fmt.Errorf("reading Service %s: %w", service.Name, err)
	}
	result := mutators.MutateService(view, nil, record, request)
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
