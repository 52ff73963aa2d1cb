package fence

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// unfit returns why an identity can't be fenced as it is recorded, regardless of other nodes. Healthy nodes report it
// too.
func (f Facts) unfit(k key, i v1alpha1.StorageIdentity) *Refusal {
	if i.Problem != "" {
		return Refuse(ReasonNoIdentity, "%s: %s", k, i.Problem)
	}
	if r := f.unproved(k, i); r != nil {
		return r
	}
	if len(i.Addresses) == 0 {
		return Refuse(ReasonBadAddress, "%s: the list of addresses is empty", k)
	}
	for _, a := range i.Addresses {
		prefix, err := ParseClientCIDR(a.CIDR)
		if err != nil {
			return Refuse(ReasonBadAddress, "%s: %v", k, err)
		}
		if r := f.outside(k, prefix.Addr()); r != nil {
			return r
		}
	}
	if i.Class == "" && (i.Secret == nil || i.Secret.Name == "") {
		return Refuse(ReasonNoCredentials, "%s: there is neither a NetworkFenceClass nor a provisioner's secret to fence with: create a NetworkFenceClass for %s", k, k.driver)
	}
	return nil
}

// unproved refuses addresses from a source that is not configured: an older version may have recorded a guess.
func (f Facts) unproved(k key, i v1alpha1.StorageIdentity) *Refusal {
	believed := f.Policy.source(k.driver)
	for _, a := range i.Addresses {
		if a.Source != believed {
			return Refuse(ReasonNoIdentity, "%s: its address %s was recorded from %s, and the configuration believes %s only. Find out by which address the storage knows the node, fence it by hand and release its volumes: %s",
				k, a.CIDR, a.Source, believed, f.command(GateAttach))
		}
	}
	return nil
}

// outside refuses an address that may belong to another cluster.
func (f Facts) outside(k key, a netip.Addr) *Refusal {
	s, _ := f.Policy.Storages(k.driver)
	ranges, own := s.ClusterRanges[k.clusterID]
	if !own {
		ranges = s.ClientRanges
	}
	if len(ranges) == 0 || slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return nil
	}
	return Refuse(ReasonOutsideRange, "%s: %s is outside this cluster's clientRanges: it may be another cluster's", k, a)
}

// sayNotFenceable warns of a healthy node that could not be fenced, for every reason that a drill has: after the loss it is too late
// to find out its storage addresses.
func (f Facts) sayNotFenceable(step *Step) {
	var problems []string
	for _, i := range f.Spec.Identities {
		k := key{i.Driver, i.ClusterID}
		if f.Policy.Mode(k.driver) == ModeFence {
			if r := f.doubt(v1alpha1.Fence{Driver: i.Driver, ClusterID: i.ClusterID, CIDRs: clientCIDRs(i)}, false); r != nil && r.Reason != ReasonFencing {
				problems = append(problems, r.Message)
			}
		}
	}
	if len(f.Spec.Identities) > 0 {
		for _, r := range f.withoutManager() {
			problems = append(problems, r.Message)
		}
	}
	if len(problems) > 0 {
		step.warn(v1alpha1.NodeHealthy, ReasonNotFenceable, "the node could not be fenced if it were lost: "+strings.Join(problems, "; "))
	}
}

// withoutManager is why no fence would be carried out, of any node.
func (f Facts) withoutManager() (refused []Refusal) {
	if f.NoCSIAddons {
		refused = append(refused, *Refuse(ReasonNoCSIAddons, "the cluster has no NetworkFences, so no fence can be requested: install csi-addons"))
	}
	if f.SilentManager != "" {
		refused = append(refused, *Refuse(ReasonUnanswered, "%s", f.SilentManager))
	}
	return refused
}
