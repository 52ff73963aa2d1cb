package multus

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// ledger knows which pod has which address. No two pods get the same address
// dynamically, not even from different networks: a test that finds traffic on
// the wrong network should be able to tell by the address.
type ledger struct {
	mu   sync.Mutex
	pods map[types.UID]interfaces
	uses map[netip.Addr]int
	// former are the addresses of a pod's earlier sandbox.
	former map[types.UID][]netip.Addr
}

// interfaces are one pod's addresses by interface.
type interfaces map[string][]netip.Addr

func newLedger() *ledger {
	return &ledger{pods: map[types.UID]interfaces{}, uses: map[netip.Addr]int{}, former: map[types.UID][]netip.Addr{}}
}

// assign returns the addresses of one interface of a pod. Those that the pod
// asks for replace those that it would have got in the same family, the way the
// "ips" capability does. Asked twice, it answers the same: the caller may not
// have seen yet that it did its work.
func (l *ledger) assign(pod types.UID, interfaceName string, from []pool, requested []string) ([]netip.Addr, error) {
	asked, err := parseAddresses(requested)
	if err != nil {
		return nil, err
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.pods[pod][interfaceName]; ok {
		return before, nil
	}
	result := slices.Clone(asked)
	for _, pool := range from {
		if hasFamily(asked, pool.subnet.Addr()) {
			continue
		}
		address, ok := l.firstFree(pool, result, l.former[pod])
		if !ok {
			return nil, fmt.Errorf("no address is left in %s", pool.subnet)
		}
		result = append(result, address)
	}
	l.note(pod, interfaceName, result)
	return result, nil
}

// firstFree gives a former address only if there is no other: host-local and
// whereabouts seldom give a pod's new sandbox what the old one had, and a test
// should see that it has changed.
func (l *ledger) firstFree(from pool, pending, former []netip.Addr) (netip.Addr, bool) {
	free := func(address netip.Addr) bool {
		return l.uses[address] == 0 && !slices.Contains(pending, address)
	}
	other := func(address netip.Addr) bool { return free(address) && !slices.Contains(former, address) }
	for _, fits := range []func(netip.Addr) bool{other, free} {
		if address, ok := from.next(fits); ok {
			return address, true
		}
	}
	return netip.Addr{}, false
}

// adopt notes the addresses that a pod got before this process started.
func (l *ledger) adopt(pod types.UID, had interfaces) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for interfaceName, addresses := range had {
		if _, known := l.pods[pod][interfaceName]; !known {
			l.note(pod, interfaceName, addresses)
		}
	}
}

// release gives back everything a pod has, for good.
func (l *ledger) release(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveBack(pod)
	delete(l.former, pod)
}

// renew gives back what a pod's sandbox had, and remembers it for the next one.
func (l *ledger) renew(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var had []netip.Addr
	for _, addresses := range l.pods[pod] {
		had = append(had, addresses...)
	}
	l.giveBack(pod)
	l.former[pod] = had
}

func (l *ledger) giveBack(pod types.UID) {
	for _, addresses := range l.pods[pod] {
		for _, address := range addresses {
			// Counted, because an address that two pods asked for is free only
			// when both are gone.
			if l.uses[address]--; l.uses[address] == 0 {
				delete(l.uses, address)
			}
		}
	}
	delete(l.pods, pod)
}

func (l *ledger) note(pod types.UID, interfaceName string, addresses []netip.Addr) {
	if l.pods[pod] == nil {
		l.pods[pod] = interfaces{}
	}
	l.pods[pod][interfaceName] = addresses
	for _, address := range addresses {
		l.uses[address]++
	}
}

// parseAddresses reads addresses with or without a prefix length.
func parseAddresses(texts []string) ([]netip.Addr, error) {
	var addresses []netip.Addr
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			addresses = append(addresses, prefix.Addr())
			continue
		}
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("parsing requested address %q: %w", text, err)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

func hasFamily(addresses []netip.Addr, like netip.Addr) bool {
	return slices.ContainsFunc(addresses, func(a netip.Addr) bool { return a.Is4() == like.Is4() })
}
