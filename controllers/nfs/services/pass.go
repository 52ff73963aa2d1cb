package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// pass is one reconciliation of a service.
type pass struct {
	*Reconciler
	*state
	key     types.NamespacedName
	service *v1alpha1.NFSService
	now     time.Time

	spec     definition.Service
	problems nfs.Problems
	// users are nodes that keep a deleted service.
	users   []string
	members []nfs.Backend
	// noServer says why spec.serverService gives no backend.
	noServer string
	// moves of slots, and of the stable address, that this pass made.
	moves []move
	// faults are the Services that cannot be published.
	faults []fault
	// failed are errors of writing Services.
	failed []error
}

// move of an address from one backend to another.
type move struct {
	what     string
	reason   string
	from, to netip.AddrPort
	nodes    int
}

// run returns the delay until the next pass, if no event comes first.
func (p *pass) run(ctx context.Context) (time.Duration, error) {
	if gone, err := p.life(ctx); gone || err != nil {
		return 0, err
	}
	backends, ready := p.backends()
	if !ready {
		return 0, nil // an event follows
	}
	p.members = p.update(p.now, p.spec.Health, backends)
	p.setTargets(p.key, p.members, p.spec)
	next := p.service.Status.DeepCopy()
	p.decide(next)
	if err := p.publish(ctx, next); err != nil {
		return 0, err
	}
	after, err := p.report(ctx, next)
	if len(p.faults) > 0 && after == 0 {
		after = refused // the Service in the way is not watched
	}
	return after, errors.Join(append(p.failed, err)...)
}

// backends are those of all sources; false while the Service of server pods is not read.
func (p *pass) backends() ([]nfs.Backend, bool) {
	parsed, problems := definition.Read(p.service)
	p.spec, p.problems = parsed, problems
	if len(problems) > 0 {
		if p.good == nil {
			return definition.Members(&p.service.Status), true // the last good spec is unknown
		}
		p.spec = *p.good
	}
	slices, ready := p.Servers.Slices(p.key, p.spec.ServerService)
	if !ready {
		return nil, false
	}
	portName := cmp.Or(p.spec.PortName, publish.PortName)
	merged := nfs.Merge(p.spec.Backends, nfs.FromEndpointSlices(slices, p.family(slices), portName))
	if len(merged) == 0 && p.spec.ServerService != "" {
		p.noServer = nfs.WhyNoServer(slices, portName)
	}
	if len(problems) == 0 {
		p.good = &parsed
		// Servers that the ClusterIPs can't reach are left out and reported.
		p.problems = nfs.CheckFamilies("spec.backends", p.spec.Exposure, merged)
	}
	return merged, true
}

// health of a backend; Down if the service does not have it.
func (p *pass) health(backend netip.AddrPort) nfs.Health {
	for _, m := range p.members {
		if m.Addr == backend {
			return m.Health
		}
	}
	return nfs.Down
}

// dead reports whether an address must be removed before another is published.
func (p *pass) dead(backend netip.AddrPort) bool {
	h := p.health(backend)
	return h == nfs.Down || h == nfs.Failing
}

func (p *pass) addMove(what string, reason assign.Reason, from, to netip.AddrPort, nodes int) {
	p.moves = append(p.moves, move{what, string(reason), from, to, nodes})
}

func (m move) String() string {
	return fmt.Sprintf("%s points to backend %s now, not to %s any more (%s; nodes that use it: %d)", m.what, m.to, m.from, m.reason, m.nodes)
}
