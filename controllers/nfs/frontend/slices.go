package frontend

import (
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/controllers/addresses"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// syncSlices writes the slices, dead addresses first. It reports whether it wrote any.
func (w *Writer) syncSlices(ctx context.Context, f publish.Frontend, dead Dead, service *corev1.Service) (bool, error) {
	want := f.Slices()
	have := make([]*discoveryv1.EndpointSlice, len(want))
	moved := false
	for i, s := range want {
		var err error
		have[i], err = w.addresses().Slice(ctx, f.Namespace, reads.SliceName(f.Name, s.Family))
		if err != nil {
			return moved, err
		}
		if have[i] == nil || !slices.ContainsFunc(published(have[i]), func(a netip.AddrPort) bool { return a != f.Backend && (dead == nil || dead(a)) }) {
			continue
		}
		empty := sliceOf(f, service, publish.Slice{Family: s.Family})
		removed := published(have[i])
		if have[i], err = w.addresses().WriteSlice(ctx, have[i], empty); err != nil {
			return moved, err
		}
		moved = true
		w.Log.Info("removed a dead address", "service", f.Name, "namespace", f.Namespace, "addresses", removed)
	}
	for i, s := range want {
		slice := sliceOf(f, service, s)
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

// sliceOf is what one slice of the Service should be.
func sliceOf(f publish.Frontend, service *corev1.Service, s publish.Slice) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Namespace, Name: reads.SliceName(f.Name, s.Family), OwnerReferences: addresses.Owner(service),
			Labels: f.WithLabels(map[string]string{discoveryv1.LabelServiceName: f.Name, discoveryv1.LabelManagedBy: rwx.SliceManager}),
		},
		AddressType: s.Family, Endpoints: s.Endpoints(), Ports: s.Ports(),
	}
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

// clear deletes this frontend's slices: they would lead a foreign Service to an NFS server. Other publishers of Fairlead
// name slices alike.
func (w *Writer) clear(ctx context.Context, f publish.Frontend) error {
	for _, family := range addresses.Families() {
		s, err := w.addresses().Slice(ctx, f.Namespace, reads.SliceName(f.Name, family))
		if err != nil {
			return err
		}
		if s == nil || s.Labels[publish.ServiceLabel] != f.Service || s.Labels[discoveryv1.LabelManagedBy] != rwx.SliceManager {
			continue
		}
		if _, err := w.addresses().DeleteSlice(ctx, s); err != nil {
			return err
		}
		w.Log.Info("deleted", "endpointslice", s.Name, "namespace", s.Namespace)
	}
	return nil
}
