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
}

// interfaces are one pod's addresses by interface.
type interfaces map[string][]netip.Addr

func newLedger() *ledger {
	return &ledger{pods: map[types.UID]interfaces{}, uses: map[netip.Addr]int{}}
}

// assign returns the addresses of one interface of a pod. Those that the pod
// asks for replace those that it would have got in the same family, the way the
// "ips" capability does. Asked twice, it answers the same: the caller may not
// have seen yet that it did its work.
func (l *ledger) assign(pod types.UID, interfaceName string, from addressing, requested []string) ([]netip.Addr, error) {
	asked, err := parseAddresses(requested)
	if err != nil {
		return nil, err
	}
	fixed, err := parseAddresses(from.fixed)
	if err != nil {
		return nil, err
	}
	given := slices.Clone(asked)
	for _, address := range fixed {
		if !hasFamily(asked, address) {
			given = append(given, address)
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.pods[pod][interfaceName]; ok {
		return before, nil
	}
	result := slices.Clone(given)
	for _, pool := range from.pools {
		if len(pool) == 0 || hasFamily(given, pool[0].subnet.Addr()) {
			continue
		}
		address, ok := l.firstFree(pool, result)
		if !ok {
			return nil, fmt.Errorf("no address is left in %s", pool[0].subnet)
		}
		result = append(result, address)
	}
	l.note(pod, interfaceName, result)
	return result, nil
}

func (l *ledger) firstFree(pool []addressRange, pending []netip.Addr) (netip.Addr, bool) {
	free := func(address netip.Addr) bool {
		return l.uses[address] == 0 && !slices.Contains(pending, address)
	}
	for _, candidate := range pool {
		if address, ok := candidate.next(free); ok {
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

// release gives back everything a pod has.
func (l *ledger) release(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
