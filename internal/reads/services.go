package reads

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Services gathers the Services of shared volumes.
func (r *Reader) Services(ctx context.Context) ([]rwx.Service, error) {
	var services []rwx.Service
	err := lists.ForEach(ctx, r.objects, &corev1.ServiceList{}, func(s *corev1.Service) {
		services = append(services, r.ServiceOf(s))
	}, client.InNamespace(r.names.Namespace), client.HasLabels{r.names.VolumeLabel})
	if err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	return services, nil
}

// Service returns the Service of a volume, or nil. The Service has the volume's name.
func (r *Reader) Service(ctx context.Context, volume string) (*rwx.Service, error) {
	object, err := r.ServiceObject(ctx, volume)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	service := r.ServiceOf(object)
	return &service, r.dropContested(ctx, &service)
}

// ServiceObject reads a Service, for replacing it.
func (r *Reader) ServiceObject(ctx context.Context, name string) (*corev1.Service, error) {
	var object corev1.Service
	if err := r.objects.Get(ctx, client.ObjectKey{Namespace: r.names.Namespace, Name: name}, &object); err != nil {
		return nil, fmt.Errorf("reading Service %s: %w", name, err)
	}
	return &object, nil
}

// ServiceOf returns the facts that rules need on a Service.
func (r *Reader) ServiceOf(s *corev1.Service) rwx.Service {
	recorded, err := multus.ParseAttachment(s.Annotations[rwx.NetworkAnnotation])
	if err != nil {
		recorded = multus.Attachment{} // counts as not recorded
	}
	return rwx.Service{
		Namespace: s.Namespace, Name: s.Name, Volume: s.Labels[r.names.VolumeLabel],
		UID: string(s.UID), ResourceVersion: s.ResourceVersion, Created: s.CreationTimestamp.Time,
		ClusterIP: s.Spec.ClusterIP, Recorded: recorded, Identity: identityOf(s),
		OptOut:  s.Annotations[rwx.OptOutAnnotation] == "true",
		Fixed:   s.Spec.Type != "" && s.Spec.Type != corev1.ServiceTypeClusterIP,
		Selects: len(s.Spec.Selector) > 0,
	}
}

// identityOf returns the recorded identity. A value that can't be parsed counts as not recorded.
func identityOf(s *corev1.Service) multus.Identity {
	addresses, err := multus.ParseAddresses(s.Annotations[rwx.AddressesAnnotation])
	if err != nil {
		addresses = ""
	}
	mac, err := multus.ParseMAC(s.Annotations[rwx.MACAnnotation])
	if err != nil {
		mac = ""
	}
	return multus.Identity{Addresses: addresses, MAC: mac}
}
