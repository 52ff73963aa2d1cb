package services

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
)

// report writes status, events and metrics. Numbers of nodes are written once a
// second at most; it returns when to write the next.
func (p *pass) report(ctx context.Context, next *v1alpha1.NFSServiceStatus) (time.Duration, error) {
	nodes := p.backendNodes(next)
	p.describe(next, nodes)
	next.ObservedGeneration = p.service.Generation
	var plan assign.Plan
	p.Pools.View(p.key, func(pool *assign.Pool) { next.Nodes, plan = int32(pool.Len()), pool.Plan() })
	p.setConditions(next, plan, p.idle(next, nodes))
	defer p.reportEvents(p.service.Status.Conditions, next.Conditions)
	if equality.Semantic.DeepEqual(&p.service.Status, next) {
		return 0, nil
	}
	if wait := p.counted.Add(counting).Sub(p.now); wait > 0 && differInNodes(&p.service.Status, next) {
		return wait, nil
	}
	p.counted = p.now
	return 0, p.write(ctx, next)
}

// write writes a status, and lets nodes be assigned by it.
func (p *pass) write(ctx context.Context, status *v1alpha1.NFSServiceStatus) error {
	if equality.Semantic.DeepEqual(&p.service.Status, status) {
		return nil
	}
	updated := p.service.DeepCopy()
	updated.Status = *status.DeepCopy()
	patch := client.MergeFromWithOptions(p.service, client.MergeFromWithOptimisticLock{})
	if err := p.Client.Status().Patch(ctx, updated, patch); err != nil {
		return fmt.Errorf("writing the status of NFSService %s: %w", p.key, err)
	}
	p.service, p.wrote = updated, updated.ResourceVersion
	p.Pools.SetService(updated)
	return nil
}

// describe writes backends with their health and nodes, and the nodes of slots.
func (p *pass) describe(status *v1alpha1.NFSServiceStatus, nodes map[netip.AddrPort]int) {
	status.Backends, status.BackendCount, status.HealthyBackends = nil, int32(len(p.members)), 0
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	for _, m := range p.members {
		record, _ := p.table.Record(m.Addr)
		b := v1alpha1.NFSBackendStatus{
			Address: m.Addr.String(), Source: string(m.Source), Weight: m.Weight, Zone: m.Zone, Drain: m.Drain,
			Health: m.Health.String(), Nodes: int32(nodes[m.Addr]), LastError: record.Error(),
		}
		if !record.Since.IsZero() {
			b.Since = &metav1.Time{Time: record.Since.UTC().Truncate(time.Second)}
		}
		if m.Health == nfs.Healthy {
			status.HealthyBackends++
		}
		status.Backends = append(status.Backends, b)
	}
}

// idle are the healthy servers without a node, as far as the service spreads nodes over servers.
func (p *pass) idle(status *v1alpha1.NFSServiceStatus, nodes map[netip.AddrPort]int) []netip.AddrPort {
	if p.spec.Exposure == nfs.Stable {
		return nil
	}
	var loads []assign.Load
	for _, m := range definition.Reachable(status, p.members) {
		loads = append(loads, assign.Load{Backend: m, Nodes: nodes[m.Addr]})
	}
	return assign.Idle(loads)
}

// backendNodes is how many nodes use each backend. It also writes the nodes of slots.
func (p *pass) backendNodes(status *v1alpha1.NFSServiceStatus) map[netip.AddrPort]int {
	slots := p.slots(status)
	for i := range slots {
		status.Slots[i].Nodes = int32(slots[i].Nodes)
	}
	nodes := map[netip.AddrPort]int{}
	p.Pools.View(p.key, func(pool *assign.Pool) {
		for address, backend := range definition.Addresses(p.spec.Exposure, status, p.members, slots, p.spec.Port) {
			nodes[backend] += pool.AddressNodes(address)
		}
	})
	return nodes
}

// differInNodes reports whether two statuses differ only in numbers of nodes and in
// what follows from these numbers.
func differInNodes(before, after *v1alpha1.NFSServiceStatus) bool {
	return equality.Semantic.DeepEqual(withoutNodes(before), withoutNodes(after))
}

func withoutNodes(status *v1alpha1.NFSServiceStatus) *v1alpha1.NFSServiceStatus {
	s := status.DeepCopy()
	s.Nodes = 0
	for i := range s.Backends {
		s.Backends[i].Nodes = 0
	}
	for i := range s.Slots {
		s.Slots[i].Nodes = 0
	}
	s.Conditions = nil
	for _, c := range status.Conditions {
		if c.Type != v1alpha1.NFSBalanced {
			s.Conditions = append(s.Conditions, c)
		}
	}
	return s
}
