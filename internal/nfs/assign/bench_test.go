package assign

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	benchNodes   = 100_000
	benchServers = 1_000
)

// cluster returns nodes in three zones, and backends in the same.
func cluster(zones bool) ([]Node, []nfs.Backend) {
	list := members(benchServers)
	nodes := make([]Node, benchNodes)
	for i := range nodes {
		nodes[i] = Node{Name: fmt.Sprintf("gke-cluster-pool-%d-%08x", i%16, i)}
		if zones {
			nodes[i].Zone = fmt.Sprint("zone-", i%3)
		}
	}
	for i := range list {
		if zones {
			list[i].Zone = fmt.Sprint("zone-", i%3)
		}
	}
	return nodes, list
}

func attachments(nodes []Node, p *Pool) []Attachment {
	list := make([]Attachment, len(nodes))
	for i, n := range nodes {
		at, _ := p.Node(n.Name)
		list[i] = Attachment{n, "pv", at.Address}
	}
	return list
}

func full(b *testing.B, zones bool) (*Pool, []Node) {
	b.Helper()
	nodes, targets := cluster(zones)
	p := newPool(DefaultSlack, targets)
	for _, n := range nodes {
		attach(b, p, n, "pv")
	}
	return p, nodes
}

// BenchmarkStep is one detach and one attach in a full pool: two steps for each op.
func BenchmarkStep(b *testing.B) {
	for _, zones := range []bool{false, true} {
		b.Run(fmt.Sprintf("zones=%v", zones), func(b *testing.B) {
			p, nodes := full(b, zones)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				n := nodes[i*7919%benchNodes]
				p.Detach(n.Name, "pv")
				if _, err := p.Attach(n, "pv"); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/step")
		})
	}
}

// BenchmarkRebuild derives the pool from a list of all attachments, as a restart does.
func BenchmarkRebuild(b *testing.B) {
	p, nodes := full(b, true)
	list := attachments(nodes, p)
	for b.Loop() {
		rebuild(p, list)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchNodes, "ns/node")
}

// BenchmarkPlan plans the loss of one of the servers.
func BenchmarkPlan(b *testing.B) {
	p, _ := full(b, true)
	list := members(benchServers)[1:]
	setMembers(p, list)
	for b.Loop() {
		must.True(b, len(p.Plan().Moves) >= benchNodes/benchServers*9/10, "too few moves")
	}
}

// BenchmarkMemory reports bytes per node of a pool that was filled step by step,
// and of one that was rebuilt, without the text of names.
func BenchmarkMemory(b *testing.B) {
	nodes, targets := cluster(true)
	for name, fill := range map[string]func() *Pool{
		"steps": func() *Pool {
			p := newPool(DefaultSlack, targets)
			for _, n := range nodes {
				attach(b, p, n, "pv")
			}
			return p
		},
		"rebuild": func() *Pool {
			p := newPool(DefaultSlack, targets)
			list := make([]Attachment, len(nodes))
			for i, n := range nodes {
				list[i] = Attachment{n, "pv", targets[i%benchServers].Address()}
			}
			rebuild(p, list)
			return p
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				p := fill()
				b.ReportMetric(float64(heap()-before)/benchNodes, "bytes/node")
				runtime.KeepAlive(p)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
