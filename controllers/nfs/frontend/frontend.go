package frontend

import (
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/controllers/addresses"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Frontend is what to write: one Service, and where it leads.
type Frontend struct {
	// Frontend names the Service, its recorded ClusterIP and the backend.
	publish.Frontend
	Namespace string
	// Service is the value of publish.ServiceLabel: the name of the NFSService.
	Service string
	// Owner of the Service. A Service of another owner is never adopted.
	Owner metav1.OwnerReference
	// Labels of the Service besides publish.ServiceLabel.
	Labels map[string]string
	// Port that clients mount.
	Port int32
	// Dead reports whether an address that is published now is dead. A dead address is
	// removed in a write of its own, before another is published; a living one is
	// replaced in one write. nil: all count as dead.
	Dead func(netip.AddrPort) bool
}

// service is what the Service should be.
func (f Frontend) service() *corev1.Service {
	s := f.Frontend.Service(f.Namespace, f.Service, f.Owner, f.Port)
	maps.Copy(s.Labels, f.Labels)
	return s
}

// labels of slices tell them from those of other publishers.
func (f Frontend) labels(own map[string]string) map[string]string {
	own[publish.ServiceLabel] = f.Service
	maps.Copy(own, f.Labels)
	return own
}

// slice is what one slice of the Service should be.
func (f Frontend) slice(service *corev1.Service, s publish.Slice) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Namespace, Name: addresses.SliceName(f.Name, s.Family), OwnerReferences: addresses.Owner(service),
			Labels: f.labels(map[string]string{discoveryv1.LabelServiceName: f.Name, discoveryv1.LabelManagedBy: storage.SliceManager}),
		},
		AddressType: s.Family, Endpoints: s.Endpoints(), Ports: s.Ports(),
	}
}

// State of a frontend after Sync.
type State string

const (
	// Published: the Service has its address, and the slices name the backend.
	Published State = "Published"
	// Deleting: the Service is being deleted. It works until then, and is recreated with its address.
	Deleting State = "ServiceDeleting"
	// Foreign: another owner has a Service of this name. Nothing is published.
	Foreign State = "ForeignService"
	// WrongAddress: the Service has another address than clients have mounted. Nothing is published.
	WrongAddress State = "WrongAddress"
	// Taken: the recorded address cannot be had, since another Service has it. Nothing is published.
	Taken State = "AddressTaken"
)

// Result of Sync.
type Result struct {
	State State
	// ClusterIP of the Service; not valid where nothing is published.
	ClusterIP netip.Addr
	// Message says what is wrong and what to do; empty where State is Published.
	Message string
	// Service says what was done: publish.Keep, Create or Update.
	Service publish.Action
	// Moved: the slices were changed.
	Moved bool
}
