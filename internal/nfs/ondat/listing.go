package ondat

import (
	"maps"
	"slices"
	"strings"
)

// Listing is what one poll of the control plane brought.
type Listing struct {
	Volumes []Volume
	// Listed are the IDs of the namespaces whose volumes are all in Volumes.
	Listed map[string]bool
	// Failed are the namespaces that could not be listed, by ID.
	Failed map[string]error
}

// Merge returns the volumes that exist, by ID, as far as is known. Volumes that were
// known before stay while their namespace could not be listed or is not shown: the
// error of one namespace says nothing of others, and the right to see it may be lost.
func (l Listing) Merge(before []Volume) []Volume {
	merged := map[string]Volume{}
	for _, v := range before {
		if !l.Listed[v.NamespaceID] {
			merged[v.ID] = v
		}
	}
	for _, v := range l.Volumes {
		merged[v.ID] = v
	}
	return slices.SortedFunc(maps.Values(merged), func(a, b Volume) int { return strings.Compare(a.ID, b.ID) })
}

// IsComplete reports whether a volume that was never listed does not exist.
func (l Listing) IsComplete() bool { return len(l.Listed) > 0 && len(l.Failed) == 0 }
