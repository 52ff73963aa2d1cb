package nfs

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// outWithin is the promised time from the end of a server to a slice with another one: failures × interval, a second, and
// the last probe of a server that hangs.
func outWithin() time.Duration {
	return probeFailures*duration(probeInterval).Duration + duration(probeTimeout).Duration + time.Second
}

// The address that nodes have mounted leads to another server in time after its server dies or hangs. What a client sees of
// it is tested on real nodes.
func TestAddressLeadsToAnotherServer(t *testing.T) {
	ends := map[string]struct{ end, undo func(*Server) error }{
		"killed": {(*Server).Kill, func(s *Server) error { return s.Start(context.Background()) }},
		"hangs":  {(*Server).Hang, (*Server).Resume},
	}
	for name, server := range ends {
		withClusterIP(t, name, func(s *scene, address string) {
			backend, err := s.c.backendOf(s.ctx, s.service, address)
			s.must(err)
			victim := s.c.running[backend]
			if victim == nil {
				s.Fatalf("%s points to %s, which is no server of this test", address, backend)
			}
			measured := lateness(s.T)
			s.must(server.end(victim))
			died := time.Now()
			s.must(s.c.waitPublished(s.ctx, s.service, address, backend))
			published, late := time.Since(died), measured()
			s.Logf("another server was published %s after the end of the first", published.Round(time.Millisecond))
			if published > outWithin() && late <= quiet {
				s.Errorf("another server was published after %s; promised are %s", published, outWithin())
			} else if published > outWithin() {
				s.Logf("promised are %s, but timers were up to %s late", outWithin(), late)
			}
			s.must(server.undo(victim))
		})
	}
}

// A deleted Service is recreated with its ClusterIP.
func TestDeletedServiceIsBackWithItsClusterIP(t *testing.T) {
	withClusterIP(t, "deleted", func(s *scene, address string) {
		service := s.serviceWith(address)
		s.must(s.c.Client.Delete(s.ctx, service))
		if now := s.returned(service); now.Spec.ClusterIP != address {
			s.Errorf("the Service had %s and has %s", address, now.Spec.ClusterIP)
		}
	})
}

// withClusterIP attaches a volume to a node, for each exposure that gives the node a ClusterIP.
func withClusterIP(t *testing.T, name string, do func(s *scene, address string)) {
	for _, exposure := range []nfs.Exposure{nfs.Stable, nfs.PerNodeStable} {
		t.Run(name+"/"+string(exposure), func(t *testing.T) {
			s := newScene(t, name+"-"+strings.ToLower(string(exposure)), exposure, 3)
			node := s.nodes(0, 1)[0]
			address := s.attach(node)[node]
			do(s, address)
			s.same(map[string]string{node: address}, s.attached(1))
		})
	}
}

// backendOf is the server that an address points to.
func (c *Cluster) backendOf(ctx context.Context, service, address string) (netip.Addr, error) {
	backends, err := c.backends(ctx, service)
	if err != nil {
		return netip.Addr{}, err
	}
	a, err := netip.ParseAddr(backends[address])
	if err != nil {
		return netip.Addr{}, fmt.Errorf("NFSService %s: %s points to %q: %w", service, address, backends[address], err)
	}
	return a, nil
}

// waitPublished waits until the slice of an address has another server.
func (c *Cluster) waitPublished(ctx context.Context, service, address string, before netip.Addr) error {
	var s v1alpha1.NFSService
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: service}, &s); err != nil {
		return err
	}
	name := service
	for i, slot := range s.Status.Slots {
		if slot.Address == address {
			name = fmt.Sprintf("%s-slot-%d", service, i)
		}
	}
	return c.wait(ctx, func(ctx context.Context) (bool, error) {
		var list discoveryv1.EndpointSliceList
		err := c.Client.List(ctx, &list, client.InNamespace(Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name})
		if err != nil {
			return false, err
		}
		for _, slice := range list.Items {
			for _, e := range slice.Endpoints {
				if len(e.Addresses) > 0 && e.Addresses[0] != before.String() {
					return true, nil
				}
			}
		}
		return false, nil
	})
}
