package pools

import (
	"cmp"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
)

// ErrUnknownService is returned while the NFSService was not read, or does not exist.
var ErrUnknownService = errors.New("the NFSService does not exist")

// Key of an attachment: the UID of its VolumeAttachment. A VolumeAttachment that
// is recreated has another, so that late news of the old one does no harm.
type Key = string

// Pools are the assignments of all NFS services. It is safe for concurrent use.
type Pools struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]*pool
	// changed are the callbacks of OnChange.
	changed []func(service types.NamespacedName, node string)
}

type pool struct {
	*assign.Pool
	known bool // its NFSService was read
	// uid and version of the NFSService that was read last.
	uid     types.UID
	version string
}

// New returns pools without services.
func New() *Pools {
	return &Pools{pools: map[types.NamespacedName]*pool{}}
}

// OnChange registers a function that is called when a node of a service comes,
// moves or goes. It is called without locks, and must not block.
func (p *Pools) OnChange(f func(service types.NamespacedName, node string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = append(p.changed, f)
}

func (p *Pools) notify(service types.NamespacedName, node string) {
	p.mu.Lock()
	changed := p.changed
	p.mu.Unlock()
	for _, f := range changed {
		f(service, node)
	}
}

// of returns the pool of a service. The lock is held.
func (p *Pools) of(service types.NamespacedName) *pool {
	have := p.pools[service]
	if have == nil {
		have = &pool{Pool: assign.NewPool()}
		p.pools[service] = have
	}
	return have
}

// View shows the pool of a service, which f must not keep. f is called with a lock.
func (p *Pools) View(service types.NamespacedName, f func(*assign.Pool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.of(service).Pool)
	p.drop(service)
}

// SetService takes over the servers and slots that a service's status names. A
// version that is older than the last one is ignored.
func (p *Pools) SetService(service *v1alpha1.NFSService) {
	p.mu.Lock()
	defer p.mu.Unlock()
	have := p.of(types.NamespacedName{Namespace: service.Namespace, Name: service.Name})
	if have.known && have.uid == service.UID {
		if order, err := resourceversion.CompareResourceVersion(service.ResourceVersion, have.version); err == nil && order <= 0 {
			return
		}
	}
	have.known, have.uid, have.version = true, service.UID, service.ResourceVersion
	exposure, status := nfs.Exposure(cmp.Or(service.Spec.Exposure, string(nfs.PerNodeStable))), &service.Status
	members := definition.Members(status)
	have.SetBackends(int(ptr.Deref(service.Spec.SlackPercent, assign.DefaultSlack)), members,
		definition.Addresses(exposure, status, members, definition.Slots(status), uint16(definition.PortOf(service))))
}

// RemoveService forgets the servers of a service that is gone. Its nodes stay
// until they are detached: a service of the same name takes them over.
func (p *Pools) RemoveService(service types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	have := p.of(service)
	have.known = false
	have.SetBackends(assign.DefaultSlack, nil, nil)
	p.drop(service)
}

// drop forgets an unused pool. The lock is held.
func (p *Pools) drop(service types.NamespacedName) {
	if have := p.pools[service]; have != nil && !have.known && have.Len() == 0 {
		delete(p.pools, service)
	}
}

// Attach returns the address for an attachment of a node, and records it. An attachment that has an address keeps it.
// Errors: ErrUnknownService, assign.ErrNoBackend.
func (p *Pools) Attach(service types.NamespacedName, node assign.Node, key Key) (string, error) {
	p.mu.Lock()
	have := p.pools[service]
	if have == nil || !have.known {
		p.mu.Unlock()
		return "", ErrUnknownService
	}
	address, err := have.Attach(node, key)
	p.mu.Unlock()
	if err == nil {
		p.notify(service, node.Name)
	}
	return address, err
}

// Record takes over an attachment from the API server, which may differ from the result of Attach.
func (p *Pools) Record(service types.NamespacedName, node assign.Node, key Key, address string) {
	if address == "" {
		return
	}
	p.remove(node.Name, func(of types.NamespacedName, pool *assign.Pool) bool {
		return of != service && pool.Detach(node.Name, key)
	})
	p.mu.Lock()
	moved := p.of(service).Record(assign.Attachment{Node: node, Volume: key, Address: address})
	p.mu.Unlock()
	if moved {
		p.notify(service, node.Name)
	}
}

// Withdraw takes back what Attach returned, if the API server has another address, or none.
func (p *Pools) Withdraw(node string, key Key) {
	p.remove(node, func(_ types.NamespacedName, pool *assign.Pool) bool { return pool.Withdraw(node, key) })
}

// Detach forgets an attachment. Its node leaves the service with the last one.
func (p *Pools) Detach(node string, key Key) {
	p.remove(node, func(_ types.NamespacedName, pool *assign.Pool) bool { return pool.Detach(node, key) })
}

// remove tries all pools: the service of a deleted attachment may not be known any more.
func (p *Pools) remove(node string, from func(types.NamespacedName, *assign.Pool) bool) {
	var left []types.NamespacedName
	p.mu.Lock()
	for service, pool := range p.pools {
		if from(service, pool.Pool) {
			left = append(left, service)
			p.drop(service)
		}
	}
	p.mu.Unlock()
	for _, service := range left {
		p.notify(service, node)
	}
}
