package nfs

import (
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// A node uses volumes of two clusters of servers, by one driver.
func severalServerClusters(t *testing.T) {
	s, other := newScene(t, "servers-a", nfs.PerNode, 2), newScene(t, "servers-b", nfs.PerNode, 1)
	node := s.nodes(0, 1)[0]
	s.counted(s.attach(node))
	other.counted(other.attach(node))
}

// A node uses two shares of one cluster of servers: from one server, and counted once.
func severalShares(t *testing.T) {
	s := newScene(t, "shares", nfs.PerNode, 2, func(service *v1alpha1.NFSService) { service.Spec.Shares = []string{Export, Second} })
	second := s.volume(Volume{Name: "shares-second", Service: s.service, Share: Second})
	node := s.nodes(0, 1)[0]
	first := s.attach(node)
	s.must(s.c.Attach(s.ctx, second, node))
	both, err := s.c.WaitAssigned(s.ctx, 1, second.Name)
	s.must(err)
	s.same(first, both.Addresses)
	s.counted(first)
}

// A node keeps its server until its last volume of the service is detached.
func TestOneOfTwoVolumesKeepsTheServer(t *testing.T) {
	for _, exposure := range exposures {
		t.Run(string(exposure), func(t *testing.T) {
			name := map[nfs.Exposure]string{nfs.PerNode: "two", nfs.PerNodeStable: "two-slots"}[exposure]
			s := newScene(t, name, exposure, 3)
			second := s.volume(Volume{Name: name + "-second", Service: name})
			nodes := s.nodes(0, 6)
			first := s.attach(nodes...)
			s.must(s.c.Attach(s.ctx, second, nodes...))
			both, err := s.c.WaitAssigned(s.ctx, 6, second.Name)
			s.must(err)
			s.same(first, both.Addresses)
			s.counted(both.Addresses)
			s.detach(nodes[:3]...)
			// New nodes find the others counted.
			s.must(s.c.Attach(s.ctx, second, s.nodes(6, 9)...))
			now, err := s.c.WaitAssigned(s.ctx, 9, second.Name)
			s.must(err)
			s.same(first, now.Addresses)
			s.counted(now.Addresses)
			s.even(s.loads(now.Addresses))
			s.same(first, s.attach(nodes[:3]...))
		})
	}
}
