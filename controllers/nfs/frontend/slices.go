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
