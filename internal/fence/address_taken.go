package fence

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// sayAddressTaken warns when a live node gets an address of a gone machine that stays fenced: the storage
// refuses that node without saying so. Autoscalers and spot instances reuse addresses.
func (f Facts) sayAddressTaken(step *Step) {
	if p := step.Status.Phase; f.here() || p != v1alpha1.NodeFenced && p != v1alpha1.NodeDrained {
		return
	}
	for _, r := range step.Spec.Fences {
		for _, text := range r.CIDRs {
			prefix, err := ParseClientCIDR(text)
			if err != nil {
				continue
			}
			if who := f.hasNow(prefix.Addr()); who != "" {
				step.warn(step.Status.Phase, ReasonAddressInUse, fmt.Sprintf("its address %s is blocked, and is or was one of %s, which the storage refuses with it; when you know that the old machine never comes back: %s",
					prefix.Addr(), who, f.command(GateUnfence)))
				return
			}
		}
	}
}

// hasNow names the live machine that has an address.
func (f Facts) hasNow(a netip.Addr) string {
	if o := f.other(func(o *Other) bool { return o.live() && o.has(a) }); o != nil {
		return f.nameOf(o)
	}
	return ""
}

// lookForFences is how often a blocked node is checked: fences of others cause no event for the node.
const lookForFences = time.Minute

// sayBlocked warns that the storage refuses a healthy node because the fence of another node blocks its address.
func (f Facts) sayBlocked(step *Step) {
	for _, n := range f.Fences {
		if !n.Blocks() || f.ours(n) || f.ofEarlierBoot(n) {
			continue
		}
		for _, i := range f.Spec.Identities {
			for _, c := range i.Addresses {
				if prefix, err := ParseClientCIDR(c.CIDR); err == nil && n.lists(prefix.Addr()) && !f.isForeign(n, key{i.Driver, i.ClusterID}) {
					step.warn(v1alpha1.NodeHealthy, ReasonAddressInUse, fmt.Sprintf("the storage refuses the node: its address %s is blocked by NetworkFence %s%s", prefix.Addr(), n.Name, f.madeFor(n)))
					step.lookAgain(lookForFences)
					return
				}
			}
		}
	}
}

// namedBy is another machine whose record names a NetworkFence.
func (f Facts) namedBy(n NetworkFence) *Other {
	return f.other(func(o *Other) bool { return recordNames(o.Spec, n) })
}

func (f Facts) madeFor(n NetworkFence) string {
	if o := f.namedBy(n); o != nil {
		return fmt.Sprintf(", made for node %s; when you know that the machine it was made for is off and stays off: %s", o.Node.Name, o.command(GateUnfence))
	}
	if node := n.Labels[NodeLabel]; node != "" {
		return fmt.Sprintf(", made for node %s; see: kubectl get nodefences -l %s=%s", node, NodeLabel, node)
	}
	return ""
}
