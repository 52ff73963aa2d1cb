package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Asker is an object that requests a network, addresses or a MAC for a volume.
type Asker struct {
	Kind, Namespace, Name, UID string
	// Since is when the object was created.
	Since time.Time
}

// String is the kind and the name: PersistentVolumeClaim default/data.
func (a Asker) String() string {
	if a.Namespace == "" {
		return a.Kind + " " + a.Name
	}
	return a.Kind + " " + a.Namespace + "/" + a.Name
}

// Claimant has or requests an identity on a network.
type Claimant struct {
	// Volume of the identity: claimants of one volume share the identity.
	Volume   string
	Network  multus.Network
	Identity multus.Identity
	// Holds: a Service records the identity, so a server may run with it.
	Holds bool
	Since time.Time
}

// Taken says that another volume has an address. It does not say which: that may be of another tenant.
func Taken(what string, network multus.Network) string {
	return fmt.Sprintf("%s on network %s is of another volume already", what, network)
}

// Contest returns why claimants do not get their identity, by index; "" for winners. A Service that
// records the identity wins, then the older object, then the name of the volume: every caller finds
// the same winner.
func Contest(claimants []Claimant) []string {
	order := make([]int, len(claimants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		a, b := claimants[x], claimants[y]
		if a.Holds != b.Holds {
			if a.Holds {
				return -1
			}
			return 1
		}
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Volume, b.Volume), strings.Compare(a.Identity.Addresses, b.Identity.Addresses), strings.Compare(a.Identity.MAC, b.Identity.MAC))
	})
	type key struct {
		network multus.Network
		what    string
	}
	taken := map[key]Claimant{}
	problems := make([]string, len(claimants))
	for _, i := range order {
		c := claimants[i]
		if c.Network.IsZero() {
			continue // nothing is fixed on the cluster network
		}
		parts := c.Identity.Parts()
		for _, what := range parts {
			if winner, ok := taken[key{c.Network, what}]; ok && winner.Volume != c.Volume {
				problems[i] = Taken(what, c.Network) + ": choose another"
				break
			}
		}
		if problems[i] != "" {
			continue
		}
		for _, what := range parts {
			if _, ok := taken[key{c.Network, what}]; !ok {
				taken[key{c.Network, what}] = c
			}
		}
	}
	return problems
}
