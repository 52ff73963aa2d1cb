package invariants

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/multus"
)

// reported are the addresses that may be published now, each after its volume: those
// that Multus reports, for what the server asks for, of Ready servers that are to stay.
func (s *state) reported() map[string]bool {
	found := map[string]bool{}
	for _, server := range s.staying(isServer) {
		if !sandbox.IsReady(server) {
			continue
		}
		for _, network := range requests(server.Annotations) {
			addresses, err := ReportedAddresses(server.Annotations, network)
			if err != nil {
				continue
			}
			for _, a := range addresses {
				found[server.Labels[names.VolumeLabel]+" "+a.Unmap().String()] = true
			}
		}
	}
	return found
}

// neverReported: no address is published by Fairlead that was not reported at some
// moment of the last seconds. What was reported until then may not be seen to be gone yet.
func neverReported(s *state, e event) []string {
	if !e.byFairlead() || !e.done() || e.after == nil {
		return nil
	}
	var found []string
	for _, key := range published(s, e.after) {
		if last, ever := s.valid[key]; !ever || s.now.Sub(last) > Tolerance {
			found = append(found, fmt.Sprintf("address published that no Ready server of the volume has: %s", key))
		}
	}
	return found
}

// notReported: an address without a server must be removed, whichever component has published it.
func notReported(s *state) []string {
	valid := s.reported()
	var found []string
	for _, kind := range []string{"/endpoints", "discovery.k8s.io/endpointslices"} {
		for _, o := range s.objects[kind] {
			for _, key := range published(s, o) {
				if !valid[key] {
					found = append(found, fmt.Sprintf("%T %s has an address that no Ready server of the volume has: %s", o, o.GetName(), key))
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// published are the addresses of a headless Service in a slice or a classic object, each after its volume.
func published(s *state, o client.Object) []string {
	var addresses []string
	service := o.GetName()
	switch o := o.(type) {
	case *discoveryv1.EndpointSlice:
		service = o.Labels[discoveryv1.LabelServiceName]
		for _, endpoint := range o.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				addresses = append(addresses, endpoint.Addresses...)
			}
		}
	//lint:ignore SA1019 for the readers of the deprecated API
	case *corev1.Endpoints:
		for _, subset := range o.Subsets {
			for _, a := range subset.Addresses {
				addresses = append(addresses, a.IP)
			}
		}
	}
	object := get[*corev1.Service](s, "/services", service)
	if o.GetNamespace() != names.Namespace || object == nil || object.Labels[names.VolumeLabel] == "" || !headless(object) {
		return nil
	}
	for i := range addresses {
		addresses[i] = object.Labels[names.VolumeLabel] + " " + addresses[i]
	}
	return addresses
}

// ReportedAddresses returns the addresses that Multus reports for the attachment of a pod with the annotations.
func ReportedAddresses(annotations map[string]string, a multus.Attachment) ([]netip.Addr, error) {
	reported, err := multus.ReportedInterfaces(annotations)
	if err != nil {
		return nil, err
	}
	return multus.AddressesOn(reported, a)
}
