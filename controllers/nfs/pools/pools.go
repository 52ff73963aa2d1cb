package pools

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
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
	held  map[Key]holding
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

// holding is one attachment.
type holding struct {
	service types.NamespacedName
	node    string
	address string
	written bool // to its VolumeAttachment
}

// New returns pools without services.
func New() *Pools {
	return &Pools{pools: map[types.NamespacedName]*pool{}, held: map[Key]holding{}}
}

// OnChange registers a function that is called when a node of a service comes,
// moves or goes; node is empty after Rebuild. It is called without locks, and must
// not block. Register before first use.
func (p *Pools) OnChange(f func(service types.NamespacedName, node string)) {
	p.changed = append(p.changed, f)
}

func (p *Pools) notify(service types.NamespacedName, node string) {
	for _, f := range p.changed {
		f(service, node)
	}
}

// of returns the pool of a service. The lock is held.
func (p *Pools) of(service types.NamespacedName) *pool {
	have := p.pools[service]
	if have == nil {
		have = &pool{Pool: assign.NewPool(assign.DefaultSlack)}
		p.pools[service] = have
	}
	return have
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
	have.SetSlack(int(ptr.Deref(service.Spec.SlackPercent, assign.DefaultSlack)))
	have.SetTargets(Targets(service))
}

// RemoveService forgets the servers of a service that is gone. Its nodes stay
// until they are detached: a service of the same name takes them over.
func (p *Pools) RemoveService(service types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have := p.pools[service]; have != nil {
		have.known = false
		have.SetTargets(nil)
		p.drop(service)
	}
}

// drop forgets an unused pool. The lock is held.
func (p *Pools) drop(service types.NamespacedName) {
	if have := p.pools[service]; have != nil && !have.known && have.Len() == 0 {
		delete(p.pools, service)
	}
}

// Attach returns the address for an attachment of a node, and records it. An
// attachment that has an address keeps it, once Record has seen it. Errors: ErrUnknownService, assign.ErrNoBackend.
func (p *Pools) Attach(service types.NamespacedName, node assign.Node, key Key) (string, error) {
	p.mu.Lock()
	have := p.pools[service]
	if have == nil || !have.known {
		p.mu.Unlock()
		return "", ErrUnknownService
	}
	address, err := have.Attach(node, key)
	if err == nil && p.held[key].address != address {
		p.held[key] = holding{service, node.Name, address, false}
	}
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
	p.mu.Lock()
	now := holding{service, node.Name, address, true}
	before, ok := p.held[key]
	if ok && before == now {
		p.mu.Unlock()
		return
	}
	left := ok && before.service != service
	moved := !ok || before.service != service || before.node != now.node || before.address != address
	if left {
		p.detach(key)
	}
	p.held[key] = now
	p.of(service).Record(assign.Attachment{Node: node, Volume: key, Address: address})
	p.mu.Unlock()
	if left {
		p.notify(before.service, before.node)
	}
	if moved {
		p.notify(service, node.Name)
	}
}

// Detach forgets an attachment. Its node leaves the service with the last one.
func (p *Pools) Detach(key Key) {
	p.mu.Lock()
	h, ok := p.detach(key)
	p.mu.Unlock()
	if ok {
		p.notify(h.service, h.node)
	}
}

func (p *Pools) detach(key Key) (holding, bool) {
	h, ok := p.held[key]
	if !ok {
		return h, false
	}
	delete(p.held, key)
	p.of(h.service).Detach(h.node, key)
	p.drop(h.service)
	return h, true
}

// Held returns an attachment in the pools.
func (p *Pools) Held(key Key) (service types.NamespacedName, node, address string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.held[key]
	return h.service, h.node, h.address, ok
}

// Attachment is one VolumeAttachment with an address.
type Attachment struct {
	Service types.NamespacedName
	Node    assign.Node
	Key     Key
	Address string
}

// Rebuild replaces all nodes by those of the attachments that list returns. News
// of attachments that arrive meanwhile wait, so that none of them is lost.
func (p *Pools) Rebuild(list func() ([]Attachment, error)) error {
	p.mu.Lock()
	attachments, err := list()
	if err != nil {
		p.mu.Unlock()
		return err
	}
	byService := map[types.NamespacedName][]assign.Attachment{}
	p.held = make(map[Key]holding, len(attachments))
	for _, a := range attachments {
		byService[a.Service] = append(byService[a.Service], assign.Attachment{Node: a.Node, Volume: a.Key, Address: a.Address})
		p.held[a.Key] = holding{a.Service, a.Node.Name, a.Address, true}
		p.of(a.Service)
	}
	services := make([]types.NamespacedName, 0, len(p.pools))
	for service, have := range p.pools {
		have.Rebuild(byService[service])
		services = append(services, service)
	}
	p.mu.Unlock()
	for _, service := range services {
		p.notify(service, "")
	}
	return nil
}
