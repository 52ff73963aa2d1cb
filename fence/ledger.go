package fence

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Sources of addresses, the surest first.
const (
	SourceCSIAddonsNode = "CSIAddonsNode"
	SourceMultus        = "Multus"
	SourceNode          = "Node"
)

var sources = []string{SourceCSIAddonsNode, SourceMultus, SourceNode}

// merge takes what the sources say now in place of what they said before, in one
// boot of one machine. An identity that nobody reports any more stays as old as it
// is, since a CSIAddonsNode goes before anybody notices that its node is lost; nor
// does a less sure source take the place of a surer one that has just fallen silent. It does
// before what the surer one said is too old to fence by, half of maxAge, but not between two routine looks; and what that said is then
// kept as earlier addresses. Where no source is left to take its place, the identity says so.
// What to fence with is as it is now, whoever says the addresses.
//
// What is mounted stays mounted by the address that the client had then, for the
// kernel at least, whatever address the client's pod gets when it starts anew. So an
// address that is reported no more is kept as an earlier one while the node holds
// volumes of the identity.
func merge(before, now []v1alpha1.StorageIdentity, at time.Time, maxAge time.Duration, holds func(key) bool) []v1alpha1.StorageIdentity {
	var merged []v1alpha1.StorageIdentity
	for _, i := range now {
		i = *i.DeepCopy()
		for n := range i.Addresses {
			i.Addresses[n].LastSeen = metav1.NewTime(at.Truncate(time.Second))
		}
		old, known := (key{i.Driver, i.ClusterID}).in(before)
		silent := at.Sub(latest(old).LastSeen.Time)
		switch {
		case !known:
		case rank(old) >= rank(i), len(i.Addresses) > 0 && silent > max(maxAge/2, RefreshEvery+time.Minute):
			i.Addresses = append(i.Addresses, gone(old, i)...)
		default:
			kept := *old.DeepCopy()
			kept.Class, kept.Secret = i.Class, i.Secret
			if silent > maxAge && len(i.Addresses) == 0 {
				kept.Problem = latest(old).Source + silentSince + i.Problem
			}
			i = kept
		}
		merged = append(merged, i)
	}
	for _, old := range before {
		if _, reported := (key{old.Driver, old.ClusterID}).in(now); !reported {
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

// silentSince is between the source of addresses that are too old and why there are no others.
const silentSince = ", by which its addresses were known, has said nothing for longer than fencing.maxAge; "

// latest address of an identity: an earlier one is as old as it is.
func latest(i v1alpha1.StorageIdentity) v1alpha1.ClientAddress {
	if len(i.Addresses) == 0 {
		return v1alpha1.ClientAddress{}
	}
	return slices.MaxFunc(i.Addresses, func(a, b v1alpha1.ClientAddress) int { return a.LastSeen.Compare(b.LastSeen.Time) })
}

// gone are the addresses of old that now has no more, the latest first.
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
	// maxEarlier addresses of an identity are kept: the record must not grow for ever
	// where a client's pod starts over and over.
	maxEarlier = 32
	tooMany    = "the node's client has had too many addresses while it held volumes, and not all are on record: reboot the node"
)

// boundEarlier drops earlier addresses where nothing can be mounted by them any more,
// and says so where not all may be on record. What a surer source than the present one
// said stays: it may be how the storage knows the node still.
func boundEarlier(i *v1alpha1.StorageIdentity, holds func(key) bool) {
	held, earlier := holds(key{i.Driver, i.ClusterID}), 0
	present := rank(*i)
	i.Addresses = slices.DeleteFunc(slices.Clone(i.Addresses), func(a v1alpha1.ClientAddress) bool {
		if !a.Earlier {
			return false
		}
		if !held && slices.Index(sources, a.Source) >= present {
			return true
		}
		earlier++
		return earlier > maxEarlier
	})
	if earlier >= maxEarlier {
		i.Problem = tooMany
	} else if i.Problem == tooMany {
		i.Problem = ""
	}
}

// rank of an identity's source; one without addresses is the least sure.
func rank(i v1alpha1.StorageIdentity) int {
	if len(i.Addresses) == 0 {
		return len(sources)
	}
	return slices.Index(sources, i.Addresses[0].Source)
}

// sameLedger compares but for times.
func sameLedger(a, b []v1alpha1.StorageIdentity) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.StorageIdentity) bool {
		sameSecret := (x.Secret == nil) == (y.Secret == nil) && (x.Secret == nil || *x.Secret == *y.Secret)
		return sameSecret && x.Driver == y.Driver && x.ClusterID == y.ClusterID && x.ClientID == y.ClientID && x.Class == y.Class && x.Problem == y.Problem &&
			slices.EqualFunc(x.Addresses, y.Addresses, func(p, q v1alpha1.ClientAddress) bool {
				return p.CIDR == q.CIDR && p.Source == q.Source && p.Earlier == q.Earlier
			})
	})
}

// addressesOf all identities, each once, for a column.
func addressesOf(ledger []v1alpha1.StorageIdentity) string {
	var all []string
	for _, i := range ledger {
		for _, a := range i.Addresses {
			if !slices.Contains(all, a.CIDR) {
				all = append(all, a.CIDR)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
