package ondat

import (
	"net/netip"
	"time"
)

// DefaultCacheExpiry is after what time a volume's Service and slices are checked
// again though nothing has changed (-cache-expiry-interval of the proposal).
const DefaultCacheExpiry = time.Minute

// Cache remembers which volumes have all that they should have in Kubernetes, so that
// a poll without news costs Kubernetes nothing. It belongs to one goroutine, or to a lock.
type Cache struct {
	// Expiry of an entry, counted from when it was added.
	Expiry  time.Duration
	entries map[string]entry
}

type entry struct {
	seen  seen
	until time.Time
}

// seen is what of a volume matters here. Its version is not part of it: that changes
// with each replica.
type seen struct {
	state              State
	namespaceID        string
	attachment         string
	server, published  netip.AddrPort
	label              string
	pv, pvc, namespace string
}

func (f Finding) seen() seen {
	return seen{f.State, f.NamespaceID, f.AttachmentType, f.Server, f.Published(), f.Labels[LabelMountEndpoint], f.PV, f.PVC, f.Namespace}
}

// Fresh says that the volume was checked as it is now, and not too long ago.
func (c *Cache) Fresh(f Finding, now time.Time) bool {
	e, ok := c.entries[f.ID]
	return ok && e.seen == f.seen() && now.Before(e.until)
}

// Add a volume for which there is nothing to do: its objects were seen to be right, or
// it is ignored until something changes. Nothing else may be added.
func (c *Cache) Add(f Finding, now time.Time) {
	if c.entries == nil {
		c.entries = map[string]entry{}
	}
	c.entries[f.ID] = entry{f.seen(), now.Add(c.Expiry)}
}

// Drop a volume: it is checked again.
func (c *Cache) Drop(id string) { delete(c.entries, id) }

// Len is the number of entries.
func (c *Cache) Len() int { return len(c.entries) }
