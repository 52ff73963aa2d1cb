package multus

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ledger knows which pod has which address. No two pods get the same address
// dynamically, not even from different networks: a test that finds traffic on
// the wrong network should be able to tell by the address.
type ledger struct {
	mu   sync.Mutex
	pods map[types.UID]map[string][]netip.Addr // by interface
	// former are the addresses of a pod's earlier sandbox.
	former map[types.UID][]netip.Addr
	// waits since when a pod is to have networks that are late.
	waits map[types.UID]time.Time
}

func newLedger() *ledger {
	return &ledger{pods: map[types.UID]map[string][]netip.Addr{}, former: map[types.UID][]netip.Addr{}, waits: map[types.UID]time.Time{}}
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
	used := map[netip.Addr]bool{}
	for _, interfaces := range l.pods {
		for _, addresses := range interfaces {
			for _, address := range addresses {
				used[address] = true
			}
		}
	}
	result := slices.Clone(asked)
	for _, address := range asked {
		used[address] = true
	}
	for _, pool := range from {
		if slices.ContainsFunc(asked, func(a netip.Addr) bool { return a.Is4() == pool.subnet.Addr().Is4() }) {
			continue
		}
		// host-local and whereabouts seldom give a pod's new sandbox what the old one had, and a test should see that it
		// has changed: a former address is given only if there is no other.
		address, ok := pool.next(func(a netip.Addr) bool { return !used[a] && !slices.Contains(l.former[pod], a) })
		if !ok {
			address, ok = pool.next(func(a netip.Addr) bool { return !used[a] })
		}
		if !ok {
			return nil, fmt.Errorf("no address is left in %s", pool.subnet)
		}
		used[address] = true
		result = append(result, address)
	}
	if l.pods[pod] == nil {
		l.pods[pod] = map[string][]netip.Addr{}
	}
	l.pods[pod][interfaceName] = result
	return result, nil
}

// release forgets a pod that will never have a network again.
func (l *ledger) release(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, pod)
	delete(l.former, pod)
	delete(l.waits, pod)
}

// takeBack forgets the addresses of a pod that could not get all of its networks.
func (l *ledger) takeBack(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, pod)
}

// renew takes back what a pod's sandbox had, and remembers it for the next one.
func (l *ledger) renew(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.former[pod] = slices.Concat(slices.Collect(maps.Values(l.pods[pod]))...)
	delete(l.pods, pod)
}

// left is what is left of a delay for a pod, which begins with the first question.
func (l *ledger) left(pod types.UID, delay time.Duration, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delay <= 0 {
		return 0
	}
	if _, waits := l.waits[pod]; !waits {
		l.waits[pod] = now
	}
	return l.waits[pod].Add(delay).Sub(now)
}

// attached: the pod waits no more.
func (l *ledger) attached(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waits, pod)
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
