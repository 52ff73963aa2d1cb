package fence

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Sources of addresses. The configuration names the only source to believe for each storage system: a fence of a
// guessed address would be confirmed and stop nothing.
const (
	SourceCSIAddonsNode = "CSIAddonsNode"
	SourceMultus        = "Multus"
	SourceNode          = "Node"
)

// merge replaces earlier reports of the sources by current ones, within one boot of one machine. Credentials are always
// the current ones.
//
// A source may fall silent while the node is healthy: a CSIAddonsNode is deleted before Kubernetes notices the loss.
// Its addresses stay on record until they are too old to fence by.
//
// A mount keeps the client's address of its time. So an address that is no longer reported stays on record as an
// earlier one while the node holds volumes of the identity.
func (f Facts) merge(before []v1alpha1.StorageIdentity, holds func(key) bool) []v1alpha1.StorageIdentity {
	before = f.believed(before)
	var merged []v1alpha1.StorageIdentity
	for _, i := range f.Ledger {
		i = *i.DeepCopy()
		for n := range i.Addresses {
			i.Addresses[n].LastSeen = metav1.NewTime(f.Now.Truncate(time.Second))
		}
		old, _ := (key{i.Driver, i.ClusterID}).in(before)
		if len(i.Addresses) > 0 {
			i.Addresses = append(i.Addresses, gone(old, i)...)
		} else if len(old.Addresses) > 0 {
			i.ClientID, i.Addresses = old.ClientID, old.Addresses
			if last := latest(old); f.Now.Sub(last.LastSeen.Time) > f.Policy.MaxAge {
				i.Problem = last.Source + silentSince + i.Problem
			} else {
				i.Problem = ""
			}
		}
		merged = append(merged, i)
	}
	for _, old := range before {
		if _, reported := (key{old.Driver, old.ClusterID}).in(f.Ledger); !reported && len(old.Addresses) > 0 {
			merged = append(merged, old)
		}
	}
	for n := range merged {
		boundEarlier(&merged[n], holds)
	}
	slices.SortFunc(merged, func(a, b v1alpha1.StorageIdentity) int {
		return strings.Compare(a.Driver+"\x00"+a.ClusterID, b.Driver+"\x00"+b.ClusterID)
	})
	return merged
}

// believed drops the addresses of sources that are not configured: another configuration or an older version
// recorded them.
func (f Facts) believed(ledger []v1alpha1.StorageIdentity) []v1alpha1.StorageIdentity {
	var list []v1alpha1.StorageIdentity
	for _, i := range ledger {
		i = *i.DeepCopy()
		i.Addresses = slices.DeleteFunc(i.Addresses, func(a v1alpha1.ClientAddress) bool { return a.Source != f.Policy.source(i.Driver) })
		for n := range i.Addresses {
			if a := &i.Addresses[n]; a.LastSeen.After(f.Now.Add(clocksDiffer)) { // by another leader's clock: its age is unknown
				a.LastSeen = metav1.NewTime(f.Now.Add(-f.Policy.MaxAge - time.Second).Truncate(time.Second))
			}
		}
		list = append(list, i)
	}
	return list
}

// silentSince joins the source of expired addresses and the reason why there are no others.
const silentSince = ", by which its addresses were known, has said nothing for longer than fencing.maxAge; "

// latest address of an identity.
func latest(i v1alpha1.StorageIdentity) v1alpha1.ClientAddress {
	if len(i.Addresses) == 0 {
		return v1alpha1.ClientAddress{}
	}
	return slices.MaxFunc(i.Addresses, func(a, b v1alpha1.ClientAddress) int { return a.LastSeen.Compare(b.LastSeen.Time) })
}

// gone are the addresses of old that now lacks, the latest first.
func gone(old, now v1alpha1.StorageIdentity) []v1alpha1.ClientAddress {
	var earlier []v1alpha1.ClientAddress
	for _, a := range old.Addresses {
		if !slices.ContainsFunc(now.Addresses, func(n v1alpha1.ClientAddress) bool { return n.CIDR == a.CIDR }) {
			a.Earlier = true
			earlier = append(earlier, a)
		}
	}
	return earlier
}

const (
	// maxEarlier addresses of an identity are kept: a client pod that keeps restarting must not
	// grow the record without bound.
	maxEarlier = 32
	tooMany    = "the node's client has had too many addresses while it held volumes, and not all are on record: reboot the node"
)

// boundEarlier drops earlier addresses that no mount can use, and reports where not all may be on record.
func boundEarlier(i *v1alpha1.StorageIdentity, holds func(key) bool) {
	held, earlier := holds(key{i.Driver, i.ClusterID}), 0
	i.Addresses = slices.DeleteFunc(slices.Clone(i.Addresses), func(a v1alpha1.ClientAddress) bool {
		if a.Earlier {
			earlier++
		}
		return a.Earlier && (!held || earlier > maxEarlier)
	})
	if held && earlier >= maxEarlier {
		i.Problem = tooMany
	} else if i.Problem == tooMany {
		i.Problem = ""
	}
}

// sameLedger compares ledgers without their times.
func sameLedger(a, b []v1alpha1.StorageIdentity) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.StorageIdentity) bool {
		sameSecret := (x.Secret == nil) == (y.Secret == nil) && (x.Secret == nil || *x.Secret == *y.Secret)
		return sameSecret && x.Driver == y.Driver && x.ClusterID == y.ClusterID && x.ClientID == y.ClientID && x.Class == y.Class && x.Problem == y.Problem &&
			slices.EqualFunc(x.Addresses, y.Addresses, func(p, q v1alpha1.ClientAddress) bool {
				return p.CIDR == q.CIDR && p.Source == q.Source && p.Earlier == q.Earlier
			})
	})
}

// addressesOf all identities and their sources, each once, for columns.
func addressesOf(ledger []v1alpha1.StorageIdentity) (addresses, sources string) {
	var all, from []string
	for _, i := range ledger {
		for _, a := range i.Addresses {
			all, from = append(all, a.CIDR), append(from, a.Source)
		}
	}
	return strings.Join(sortedSet(all), ","), strings.Join(sortedSet(from), ",")
}

func sortedSet(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}
