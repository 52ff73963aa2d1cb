package assign

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func member(i int) nfs.Backend {
	a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).Next()
	return nfs.Backend{Addr: netip.AddrPortFrom(a, nfs.DefaultPort), Weight: 1, Health: nfs.Healthy}
}

func members(n int) []nfs.Backend {
	list := make([]nfs.Backend, n)
	for i := range list {
		list[i] = member(i)
	}
	return list
}

// newPool exposes each backend by its own address.
func newPool(slack int, list []nfs.Backend) *Pool {
	p := NewPool()
	p.slack = slack
	setMembers(p, list)
	return p
}

func setMembers(p *Pool, list []nfs.Backend) {
	addresses := map[string]netip.AddrPort{}
	for _, m := range list {
		addresses[m.Address()] = m.Addr
	}
	p.SetBackends(p.slack, list, addresses)
}

// rebuild is what a restart does.
func rebuild(p *Pool, list []Attachment) {
	*p = Pool{slack: p.slack, backends: p.backends, leads: p.leads, nodes: map[string]*entry{}, counts: map[string]int{}}
	for i := range p.backends {
		p.backends[i].nodes = 0
	}
	for _, a := range list {
		p.Record(a)
	}
}

func attach(t testing.TB, p *Pool, n Node, volume string) string {
	t.Helper()
	address, err := p.Attach(n, volume)
	must.Do(t, err)
	return address
}

func node(i int) Node { return Node{Name: fmt.Sprintf("node-%d", i)} }

func nodesOf(p *Pool) []int {
	var list []int
	for _, l := range p.Loads() {
		list = append(list, l.Nodes)
	}
	return list
}
