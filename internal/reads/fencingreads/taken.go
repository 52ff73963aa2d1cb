package fencingreads

import (
	"slices"
	"sync"
)

// taken are the addresses that are decided about: two nodes may have one, and the second decision has to know of the first. A
// decision is on record some time after its snapshot was read, and other snapshots are read meanwhile.
type taken struct {
	sync.Mutex
	// begun counts the snapshots.
	begun int64
	by    map[string]decided
}

// decided is the last decision about an address.
type decided struct {
	node string
	// open decisions are not carried out yet; snapshots up to the number were begun before the last was.
	open     int
	snapshot int64
}

// begin a snapshot.
func (t *taken) begin() int64 {
	t.Lock()
	defer t.Unlock()
	t.begun++
	return t.begun
}

func (t *taken) take(snapshot int64, node string, addresses []string) (done func(), ok bool) {
	t.Lock()
	defer t.Unlock()
	unknown := func(a string) bool {
		d := t.by[a]
		return d.node != "" && d.node != node && (d.open > 0 || snapshot <= d.snapshot)
	}
	if slices.ContainsFunc(addresses, unknown) {
		return nil, false
	}
	t.change(node, addresses, 1)
	return func() {
		t.Lock()
		defer t.Unlock()
		t.change(node, addresses, -1)
	}, true
}

func (t *taken) change(node string, addresses []string, open int) {
	if t.by == nil {
		t.by = map[string]decided{}
	}
	for _, a := range addresses {
		d := t.by[a]
		t.by[a] = decided{node, d.open + open, t.begun}
	}
}
