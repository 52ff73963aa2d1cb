package multus

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attached is an interface of a pod's sandbox on a network.
type attached struct {
	netv1.NetworkSelectionElement
	subnets   []subnet
	addresses []netip.Addr
}

// sandbox is what the present sandbox of a pod was given.
type sandbox struct {
	pod        types.UID
	interfaces []attached
	// reported: the cache has shown its status.
	reported bool
}

// ledger knows which pod has which address. No two pods get the same address
// dynamically, not even from different networks: a test that finds traffic on
// the wrong network should be able to tell by the address.
type ledger struct {
	mu        sync.Mutex
	sandboxes map[types.NamespacedName]*sandbox
	// last address that was given of each subnet. As with host-local, the search goes on from there: a new sandbox seldom
	// has what the old one had, and a test should see that it has changed.
	last map[netip.Prefix]netip.Addr
}

func newLedger() *ledger {
	return &ledger{sandboxes: map[types.NamespacedName]*sandbox{}, last: map[netip.Prefix]netip.Addr{}}
}

// given is what the pod's sandbox has; nil is nothing. An earlier sandbox, or pod of the name, loses its addresses.
// The cache may not show yet that a status was written: then the pod keeps what it was given.
func (l *ledger) given(pod *corev1.Pod) []attached {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(pod)
	s := l.sandboxes[key]
	if s == nil {
		return nil
	}
	if s.pod != pod.UID || finished(pod) || s.reported && !reported(pod) {
		delete(l.sandboxes, key)
		return nil
	}
	s.reported = reported(pod)
	return s.interfaces
}

// give fills in the addresses of a pod's interfaces, or none. Those that the pod
// asks for replace those that it would have got in the same family, the way host-local
// takes them. With whereabouts it has both.
func (l *ledger) give(pod *corev1.Pod, interfaces []attached) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := map[netip.Addr]bool{}
	for _, s := range l.sandboxes {
		for _, i := range s.interfaces {
			for _, a := range i.addresses {
				taken[a] = true
			}
		}
	}
	for n := range interfaces {
		i := &interfaces[n]
		for _, text := range i.IPRequest {
			address, err := parseAddress(text)
			if err != nil {
				return fmt.Errorf("parsing a requested address: %w", err)
			}
			taken[address], i.addresses = true, append(i.addresses, address)
		}
		asked := slices.Clone(i.addresses)
		for _, subnet := range i.subnets {
			if !subnet.beside && slices.ContainsFunc(asked, func(a netip.Addr) bool { return a.Is4() == subnet.Subnet.Addr().Is4() }) {
				continue
			}
			address, err := l.next(subnet, taken)
			if err != nil {
				return fmt.Errorf("network %s/%s: %w", i.Namespace, i.Name, err)
			}
			taken[address], i.addresses = true, append(i.addresses, address)
		}
	}
	l.sandboxes[client.ObjectKeyFromObject(pod)] = &sandbox{pod: pod.UID, interfaces: interfaces}
	return nil
}

// next address of a subnet that is free.
func (l *ledger) next(of subnet, taken map[netip.Addr]bool) (netip.Addr, error) {
	subnet, first := of.Subnet, of.first()
	begin := first
	if last := l.last[subnet]; last.IsValid() && subnet.Contains(last.Next()) {
		begin = last.Next()
	}
	for a := begin; ; {
		broadcast := a.Is4() && !subnet.Contains(a.Next())
		if !broadcast && !taken[a] && !of.excludes(a) {
			l.last[subnet] = a
			return a, nil
		}
		if a = a.Next(); !subnet.Contains(a) {
			a = first
		}
		if a == begin {
			return netip.Addr{}, fmt.Errorf("no address is left in %s", subnet)
		}
	}
}

// release forgets a pod that is gone.
func (l *ledger) release(pod types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sandboxes, pod)
}
