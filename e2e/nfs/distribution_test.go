package nfs

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// distributions are those that the GKE NFS driver's own end-to-end test expects
// (nfs-lb-csi-driver, test/e2e): how many nodes have an address, how many
// different ones there are, and the fewest and most nodes of one.
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

// servers starts the first n servers that all tests share.
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

// backends of addresses that nodes mount: themselves, or of slots.
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
					// One after the other: else a server may get two nodes of one Deployment, and none of the other.
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

// one backend more or less moves the nodes of that backend only.
func TestOnlyOrphansMove(t *testing.T) {
	c, ctx := shared(t), t.Context()
	const service, nodes = "orphans", 40
	addresses, err := c.servers(ctx, 4)
	must.Do(t, err)
	must.Do(t, c.CreateService(ctx, NewService(service, nfs.PerNodeStable, addresses...)))
	must.Do(t, c.UseNodes(ctx, service, nodes))
	must.Do(t, c.CreateVolume(ctx, Volume{Name: service, Service: service}))
	must.Do(t, c.CreateClients(ctx, service, service, nodes))
	before, err := c.WaitAssigned(ctx, nodes, service)
	must.Do(t, err)
	places, err := c.backends(ctx, service)
	must.Do(t, err)
	steps := []struct {
		name   string
		do     func() error
		leaves netip.Addr // whose nodes move
		open   int        // backends that take nodes then
	}{
		{"killed", c.running[addresses[0]].Kill, addresses[0], 3},
		{"back", func() error { return c.running[addresses[0]].Start(ctx) }, netip.Addr{}, 4},
		{"drained", func() error {
			return c.ChangeService(ctx, service, func(s *v1alpha1.NFSServiceSpec) { s.Backends[1].Drain = true })
		}, addresses[1], 3},
		{"removed", func() error {
			return c.ChangeService(ctx, service, func(s *v1alpha1.NFSServiceSpec) { s.Backends = append(s.Backends[:1], s.Backends[2:]...) })
		}, netip.Addr{}, 3},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatal(step.name, err)
		}
		err := c.WaitService(ctx, service, func(s *v1alpha1.NFSService) bool {
			open := 0
			for _, b := range s.Status.Backends {
				if b.Health == nfs.Healthy.String() && !b.Drain {
					open++
				}
			}
			for _, slot := range s.Status.Slots {
				if host(slot.Backend) == step.leaves.String() || slot.Backend == "" {
					return false
				}
			}
			return open == step.open
		})
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		now, err := c.backends(ctx, service)
		must.Do(t, err)
		for address, backend := range now {
			if was := places[address]; was != backend && was != step.leaves.String() {
				t.Errorf("%s: slot %s moved from %s to %s", step.name, address, was, backend)
			}
		}
		places = now
	}
	after, err := c.WaitAssigned(ctx, nodes, service)
	must.Do(t, err)
	for node, address := range before.Addresses {
		if after.Addresses[node] != address {
			t.Errorf("%s mounted %s and has %s now", node, address, after.Addresses[node])
		}
	}
	c.remove(t, service, []string{service}, []string{service})
}
