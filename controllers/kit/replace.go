package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/mutators"
)

// CanReplace asks the API server in dry runs whether it admits the deletion of an object and the creation
// of its successor, which has the same name: admission comes before the look for the name
// (k8s.io/apiserver pkg/registry/generic/registry/store.go, create).
func CanReplace(ctx context.Context, c client.Client, old, successor client.Object, preconditions client.Preconditions) error {
	err := client.IgnoreAlreadyExists(c.Create(ctx, successor.DeepCopyObject().(client.Object), client.DryRunAll))
	if err == nil {
		err = c.Delete(ctx, old, preconditions, client.DryRunAll)
	}
	if err != nil {
		return fmt.Errorf("the replacement would be refused, so nothing is deleted: %w", err)
	}
	return nil
}

// KeptService is the part of a Service that outlives its replacement: all but allocated values.
func KeptService(old *corev1.Service) *corev1.Service {
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

// RenewedService is the Service as the storage system would create it now, shaped by the rule of the
// webhook, which may be down.
func RenewedService(names longhorn.Names, old *corev1.Service, record rollout.Record, request rwx.Request) (*corev1.Service, error) {
	fresh := KeptService(old)
	if fresh.Annotations == nil {
		fresh.Annotations = map[string]string{}
	}
	if text, ok := fresh.Annotations[rwx.SelectorAnnotation]; ok && len(fresh.Spec.Selector) == 0 {
		if err := json.Unmarshal([]byte(text), &fresh.Spec.Selector); err != nil {
			return nil, fmt.Errorf("annotation %s of Service %s: %w", rwx.SelectorAnnotation, old.Name, err)
		}
	}
	if len(fresh.Spec.Selector) > 0 { // without a selector, the rule restores it
		fresh.Spec.ClusterIP = ""
	}
	for _, key := range []string{rwx.SelectorAnnotation, rwx.NetworkAnnotation, rwx.AddressesAnnotation, rwx.MACAnnotation} {
		delete(fresh.Annotations, key)
	}
	return shaped(names, fresh, record, request)
}

func shaped(names longhorn.Names, service *corev1.Service, record rollout.Record, request rwx.Request) (*corev1.Service, error) {
	var view mutators.Service
	var shaped corev1.Service
	data, err := json.Marshal(service)
	if err == nil {
		err = json.Unmarshal(data, &view)
	}
	if err == nil {
		data, err = mutators.Apply(data, mutators.MutateService(names, view, nil, record, request).Patch)
	}
	if err == nil {
		err = json.Unmarshal(data, &shaped)
	}
	if err != nil {
		return nil, fmt.Errorf("shaping Service %s: %w", service.Name, err)
	}
	return &shaped, nil
}
