package beside

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// TestNetworkMatrix holds Longhorn's table of networks for both settings of this version:
// what the CSI plugin, the server, its Service, the endpoint and its addresses are once
// both settings are applied.
func TestNetworkMatrix(t *testing.T) {
	rows := []struct{ storage, shared, clients, instances string }{
		{NetworkA, "false", "", NetworkA},
		{NetworkA, "true", NetworkA, NetworkA},
		{NetworkB, "true", NetworkB, NetworkB},
		{"", "true", "", ""},
		{"", "false", "", ""},
	}
	eachWay(t, func(s scene) {
		s.must(s.CreateVolume(s.ctx, "pvc-matrix", "rwx"))
		for _, row := range rows {
			what := fmt.Sprintf("%s=%q %s=%s", StorageNetwork, row.storage, StorageNetworkForRWX, row.shared)
			s.set(StorageNetwork, row.storage)
			s.set(StorageNetworkForRWX, row.shared)
			s.must(s.waitNetworks(s.On(row.clients), OnStorage(row.instances), one.installed))
			s.must(s.Use(s.ctx, "pvc-matrix"))
			s.expectMountable("pvc-matrix")
			// Longhorn may still be stopping the server of the row before.
			if err := eventually.Until(s.ctx, "the row", attachTimeout, func() error { return s.row("pvc-matrix", s.On(row.clients)) }); err != nil {
				s.report(fmt.Errorf("%s: %w", what, err))
			}
			s.release("pvc-matrix")
		}
	})
}

// row compares all that derives from the network of RWX volumes.
func (s scene) row(volume, network string) error {
	ds, err := s.Plugin(s.ctx)
	if err != nil {
		return err
	}
	if got := Requested(ds.Spec.Template.Annotations); got != network {
		return fmt.Errorf("the CSI plugin's template asks for %q", got)
	}
	if err := s.servedOn(volume, network); err != nil {
		return err
	}
	var service corev1.Service
	if err := s.Client.Get(s.ctx, key(volume), &service); err != nil {
		return err
	}
	headless := service.Spec.ClusterIP == corev1.ClusterIPNone
	if headless != (network != "") || headless == (len(service.Spec.Selector) > 0) {
		return fmt.Errorf("the Service has cluster IP %s and selector %v", service.Spec.ClusterIP, service.Spec.Selector)
	}
	endpoint, err := s.Text(s.ctx, "ShareManager", volume, "status", "endpoint")
	if err != nil {
		return err
	}
	want := fmt.Sprintf("nfs://%s/%s", service.Spec.ClusterIP, volume)
	if headless {
		want = fmt.Sprintf("nfs://%s.%s.svc.cluster.local/%s", volume, Namespace, volume)
	}
	if endpoint != want {
		return fmt.Errorf("the endpoint is %s, want %s", endpoint, want)
	}
	return s.publishes(volume, network)
}

// publishes compares the addresses in slices with those that Multus reported.
func (s scene) publishes(volume, network string) error {
	server, err := s.Server(s.ctx, volume)
	if err != nil {
		return err
	}
	want := []string{server.Status.PodIP}
	if _, name, found := strings.Cut(network, "@"); found {
		want = slices.DeleteFunc(slices.Clone(Interfaces(*server)[name]), func(ip string) bool { return strings.Contains(ip, ":") })
	}
	got, err := s.Published(s.ctx, volume)
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("the addresses %v are published, want %v", got, want)
	}
	return err
}
