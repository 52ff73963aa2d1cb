package assign

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func member(i int) nfs.Member {
	a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).Next()
	return nfs.Member{Health: nfs.Healthy, Backend: nfs.Backend{Addr: netip.AddrPortFrom(a, nfs.DefaultPort), Weight: 1}}
}

func members(n int) []nfs.Member {
	list := make([]nfs.Member, n)
	for i := range list {
		list[i] = member(i)
	}
	return list
}

func newPool(slack int, targets []Target) *Pool {
	p := NewPool(slack)
	p.SetTargets(targets)
	return p
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
