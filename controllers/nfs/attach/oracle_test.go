package attach

import (
	"fmt"
	"testing"
)

// The end-to-end tests of the GKE driver count nodes by server address. Deployments
// have one pod a node, on other nodes each; each Deployment has a volume, and all
// volumes have one handle.
func TestDistributionOfTheGKEDriversTests(t *testing.T) {
	for _, test := range []struct {
		nodes, servers   int
		deployments      []int
		removeFirst      bool
		annotated, ips   int
		lowest, greatest int
	}{
		{10, 10, []int{10}, false, 10, 10, 1, 1},
		{10, 5, []int{5}, false, 5, 5, 1, 1},
		{10, 5, []int{10}, false, 10, 5, 2, 2},
		{10, 5, []int{9}, false, 9, 5, 1, 2},
		{10, 5, []int{5, 5}, false, 10, 5, 2, 2},
		{10, 5, []int{5, 5}, true, 5, 5, 1, 1},
		{100, 10, []int{100}, false, 100, 10, 10, 10},
	} {
		t.Run(fmt.Sprintf("%d nodes, %d servers, %v", test.nodes, test.servers, test.deployments), func(t *testing.T) {
			w := newWorld(t, serviceOf(test.servers), test.nodes)
			l := w.leader()
			next := 0
			var pvs []string
			on := map[string][]string{}
			for d, pods := range test.deployments {
				pv := fmt.Sprintf("pv%d", d)
				w.volume(pv, "nfs-server.default.svc.cluster.local/exports")
				pvs = append(pvs, pv)
				for range pods {
					node := fmt.Sprintf("n%d", next%test.nodes)
					next++
					on[pv] = append(on[pv], node)
					l.attach(pv, node)
				}
			}
			if test.removeFirst {
				for _, node := range on[pvs[0]] {
					l.detach(pvs[0], node)
				}
				pvs = pvs[1:]
			}
			check := func(annotated, ips, lowest, greatest int) {
				t.Helper()
				counts := map[string]int{}
				for _, at := range l.pools.Placements(pool) {
					counts[at.Address]++
				}
				total, low, high := 0, test.nodes, 0
				for _, n := range counts {
					total, low, high = total+n, min(low, n), max(high, n)
				}
				// A later Deployment does not fill what the first leaves: nothing moves, so low and high may differ by what was left.
				if total != annotated || len(counts) != ips || total > 0 && (low != lowest || high != greatest) {
					t.Errorf("%d nodes on %d addresses, %d to %d each; want %d on %d, %d to %d", total, len(counts), low, high, annotated, ips, lowest, greatest)
				}
			}
			check(test.annotated, test.ips, test.lowest, test.greatest)
			for _, pv := range pvs {
				for _, node := range on[pv] {
					l.detach(pv, node)
				}
			}
			check(0, 0, 0, 0)
		})
	}
}
