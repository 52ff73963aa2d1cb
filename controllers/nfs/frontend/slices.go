//lint:file-ignore SA1019 the readers of the deprecated API are served too

package frontend

import (
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/controllers/addresses"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// syncSlices writes the slices, dead addresses first. It reports whether it wrote any.
func (w *Writer) syncSlices(ctx context.Context, f Frontend, service *corev1.Service) (bool, error) {
	want := f.Slices()
	have := make([]*discoveryv1.EndpointSlice, len(want))
	moved := false
	for i, s := range want {
		var err error
		have[i], err = w.addresses().Slice(ctx, f.Namespace, addresses.SliceName(f.Name, s.Family))
		if err != nil {
			return moved, err
		}
		if have[i] == nil || !f.namesDead(have[i]) {
			continue
		}
		empty := f.slice(service, publish.Slice{Family: s.Family})
		dead := published(have[i])
		if have[i], err = w.addresses().WriteSlice(ctx, have[i], empty); err != nil {
			return moved, err
		}
		moved = true
		w.Log.Info("removed a dead address", "service", f.Name, "namespace", f.Namespace, "addresses", dead)
	}
	for i, s := range want {
		slice := f.slice(service, s)
		if have[i] == nil && len(slice.Endpoints) == 0 || have[i] != nil && addresses.SameSlice(have[i], slice) {
			continue
		}
		if _, err := w.addresses().WriteSlice(ctx, have[i], slice); err != nil {
			return moved, err
		}
		moved = true
		w.Log.Info("published", "service", f.Name, "namespace", f.Namespace, "family", s.Family, "addresses", published(slice))
	}
	return moved, nil
}

// namesDead reports whether a slice names an address that must be removed before another is added.
func (f Frontend) namesDead(s *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(published(s), func(a netip.AddrPort) bool { return a != f.Backend && (f.Dead == nil || f.Dead(a)) })
}

// published are the addresses that a slice names.
func published(s *discoveryv1.EndpointSlice) []netip.AddrPort {
	var list []netip.AddrPort
	for _, e := range s.Endpoints {
		for _, text := range e.Addresses {
			address, err := netip.ParseAddr(text)
			for _, p := range s.Ports {
				if err == nil && !publish.IsVersion3(p.Name) {
					list = append(list, netip.AddrPortFrom(address.Unmap(), uint16(ptr.Deref(p.Port, 0))))
				}
			}
		}
	}
	return list
}

// syncClassic writes the Endpoints object. It is labelled so that Kubernetes does
// not mirror it into slices beside Fairlead's.
func (w *Writer) syncClassic(ctx context.Context, f Frontend, service *corev1.Service) error {
	have, err := w.addresses().Classic(ctx, f.Namespace, f.Name)
	if err != nil {
		return err
	}
	if !w.Classic {
		if have != nil && f.owns(have.Labels) {
			return w.addresses().DeleteClassic(ctx, have)
		}
		return nil
	}
	want := f.classic(service)
	if have == nil && len(want.Subsets) == 0 || have != nil && addresses.SameClassic(have, want) {
		return nil
	}
	_, err = w.addresses().WriteClassic(ctx, have, want)
	return err
}

func classicPorts(ports []discoveryv1.EndpointPort) []corev1.EndpointPort {
	var list []corev1.EndpointPort
	for _, p := range ports {
		list = append(list, corev1.EndpointPort{Name: *p.Name, Protocol: *p.Protocol, Port: *p.Port})
	}
	return list
}

func (f Frontend) classic(service *corev1.Service) *corev1.Endpoints {
	e := &corev1.Endpoints{}
	e.Namespace, e.Name, e.OwnerReferences = f.Namespace, f.Name, addresses.Owner(service)
	e.Labels = f.labels(map[string]string{discoveryv1.LabelSkipMirror: "true", storage.EndpointsManagedBy: storage.SliceManager})
	for _, s := range f.Slices() {
		if s.Backend.IsValid() {
			e.Subsets = []corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: s.Backend.Addr().String()}},
				Ports:     classicPorts(s.Ports()),
			}}
		}
	}
	return e
}
