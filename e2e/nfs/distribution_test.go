package nfs

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// distributions that the end-to-end test of the GKE NFS driver expects (nfs-lb-csi-driver, test/e2e): nodes with an address,
// different addresses, and the fewest and most nodes of one.
var distributions = []struct {
	nodes, servers int
	clients        []int
	want           []distribution // after each client is there, then after the first is removed
}{
	{10, 10, []int{10}, []distribution{{10, 10, 1, 1}}},
	{10, 5, []int{5}, []distribution{{5, 5, 1, 1}}},
	{10, 5, []int{10}, []distribution{{10, 5, 2, 2}}},
	{10, 5, []int{9}, []distribution{{9, 5, 1, 2}}},
	{10, 5, []int{5, 5}, []distribution{{10, 5, 2, 2}, {5, 5, 1, 1}}},
	{100, 10, []int{100}, []distribution{{100, 10, 10, 10}}},
}

type distribution struct{ assigned, different, lowest, highest int }

// servers starts the first n shared servers.
func (c *Cluster) servers(ctx context.Context, n int) ([]netip.Addr, error) {
	var addresses []netip.Addr
	for i := 1; i <= n; i++ {
		a := ServerAddress(i)
		addresses = append(addresses, a)
		if c.running[a] != nil {
			continue
		}
		s, err := c.StartServer(ctx, a)
		if err != nil {
			return nil, err
		}
		c.running[a] = s
	}
	return addresses, nil
}

// backends by the address that nodes mount: of the Service, or of slots.
func (c *Cluster) backends(ctx context.Context, service string) (map[string]string, error) {
	s, err := c.Service(ctx, service)
	if err != nil {
		return nil, err
	}
	backends := map[string]string{s.Status.Address: host(s.Status.Backend)}
	for _, slot := range s.Status.Slots {
		backends[slot.Address] = host(slot.Backend)
	}
	return backends, nil
}

func host(backend string) string {
	if a, err := netip.ParseAddrPort(backend); err == nil {
		return a.Addr().String()
	}
	return backend
}

func (c *Cluster) distribution(ctx context.Context, nodes int, service string, volumes ...string) (distribution, error) {
	a, err := c.WaitAssigned(ctx, nodes, volumes...)
	if err != nil {
		return distribution{}, err
	}
	backends, err := c.backends(ctx, service)
	if err != nil {
		return distribution{}, err
	}
	loads := Loads(backends, a)
	lowest, highest := Range(loads)
	return distribution{len(a.Addresses), len(loads), lowest, highest}, nil
}

func TestNodesAreSpreadEvenly(t *testing.T) {
	c := shared(t)
	for _, exposure := range exposures {
		for _, d := range distributions {
			t.Run(fmt.Sprintf("%s/%d nodes, %d servers, clients %v", exposure, d.nodes, d.servers, d.clients), func(t *testing.T) {
				ctx := t.Context()
				addresses, err := c.servers(ctx, d.servers)
				must.Do(t, err)
				service := strings.ToLower(fmt.Sprintf("%s-%d-%d-%d", exposure, d.nodes, d.servers, d.clients[0]+len(d.clients)))
				must.Do(t, c.CreateService(ctx, NewService(service, exposure, addresses...)))
				must.Do(t, c.UseNodes(ctx, service, d.nodes))
				var volumes []string
				sum := 0
				for i, clients := range d.clients {
					volume := fmt.Sprintf("%s-%d", service, i)
					// Both volumes have one handle, as in that test.
					must.Do(t, c.CreateVolume(ctx, Volume{Name: volume, Service: service, Handle: service}))
					must.Do(t, c.CreateClients(ctx, service, volume, clients))
					volumes, sum = append(volumes, volume), sum+clients
					// In turn: else a server may get two nodes of one Deployment, and none of the other.
					if _, err := c.WaitAssigned(ctx, sum, volumes...); err != nil {
						t.Fatal(err)
					}
				}
				for i, want := range d.want {
					if i > 0 {
						sum -= d.clients[i-1]
						must.Do(t, c.DeleteClients(ctx, volumes[i-1]))
					}
					got, err := c.distribution(ctx, sum, service, volumes...)
					must.Do(t, err)
					if got != want {
						t.Errorf("step %d: got %+v, want %+v", i, got, want)
					}
				}
				c.remove(t, service, volumes[len(d.want)-1:], volumes)
			})
		}
	}
}

// remove deletes clients and volumes, waits until nothing is assigned, and deletes the service.
func (c *Cluster) remove(t *testing.T, service string, clients, volumes []string) {
	t.Helper()
	ctx := t.Context()
	for _, v := range clients {
		must.Do(t, c.DeleteClients(ctx, v))
	}
	if _, err := c.WaitAssigned(ctx, 0, volumes...); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitService(ctx, service, func(s *v1alpha1.NFSService) bool { return s.Status.Nodes == 0 }); err != nil {
		t.Error(err)
	}
	for _, v := range volumes {
		must.Do(t, c.DeleteVolume(ctx, v))
	}
	s, err := c.Service(ctx, service)
	must.Do(t, err)
	must.Do(t, c.Client.Delete(ctx, s))
}
