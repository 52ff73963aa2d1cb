package fence

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// request is the fence that one identity of a lost node needs, or why there is none. Nothing is fenced by a guess: a
// wrong address would block a healthy node.
func (f Facts) request(k key, number int64) (v1alpha1.Fence, *Refusal) {
	var none v1alpha1.Fence
	identity, known := k.in(f.Spec.Identities)
	if !known {
		return none, Refuse(ReasonNoIdentity, "%s: no address of the node was recorded while it was healthy; fence it by hand and release its volumes: %s", k, f.command(GateAttach))
	}
	fence := v1alpha1.Fence{
		Name: fenceName(f.Node.Name, f.Spec.Boot, number, k), Driver: k.driver, ClusterID: k.clusterID,
		Class: identity.Class, Secret: identity.Secret,
		CIDRs: clientCIDRs(identity), State: v1alpha1.FenceRequested, Since: f.now(),
	}
	return fence, cmp.Or(f.besideDriver(k), f.stale(k, identity), f.doubt(fence, false), f.contradicted(k, identity))
}

// clientCIDRs are the addresses of an identity. One that can't be parsed makes it unfit.
func clientCIDRs(identity v1alpha1.StorageIdentity) (cidrs []string) {
	for _, a := range identity.Addresses {
		if prefix, err := ParseClientCIDR(a.CIDR); err == nil {
			cidrs = append(cidrs, prefix.String())
		}
	}
	return sortedSet(cidrs)
}

// doubt is what speaks against a fence. Before the fence is in effect, anything that would block others or miss the
// node counts; after that, only another object that unfences its addresses.
func (f Facts) doubt(r v1alpha1.Fence, stands bool) *Refusal {
	k := keyOfFence(r)
	if stands {
		return f.leftover(r, stands)
	}
	identity, _ := k.in(f.Spec.Identities)
	if refusal := cmp.Or(f.besideDriver(k), f.unfit(k, identity)); refusal != nil {
		return refusal
	}
	for _, text := range r.CIDRs {
		prefix, err := ParseClientCIDR(text)
		if err != nil {
			return Refuse(ReasonBadAddress, "%s: %v", k, err)
		}
		if refusal := f.address(k, prefix.Addr()); refusal != nil {
			return refusal
		}
	}
	return f.leftover(r, stands)
}

// besideDriver refuses to fence where the CSI driver fences too: the driver unfences without a reboot and may remove
// Fairlead's block with its own.
func (f Facts) besideDriver(k key) *Refusal {
	s, _ := f.Policy.Storages(k.driver)
	if pod := f.SelfFencing[s.Profile]; pod != "" {
		return Refuse(ReasonDriverFences, "%s: the CSI driver fences by itself (pod %s has --enable-fencing), and unfences without a reboot. Set enableFencing: false on the Driver; or, if the driver is to fence, set fencing.profiles[%s].mode to off", k, pod, s.Profile)
	}
	return nil
}

// clocksDiffer is by how much the clocks of two leaders may differ. A greater difference makes an age unknown.
const clocksDiffer = time.Minute

// stale refuses an old ledger: the addresses of a gone machine are given to others.
func (f Facts) stale(k key, identity v1alpha1.StorageIdentity) *Refusal {
	lost := f.Now
	if f.Spec.LostSince != nil {
		lost = f.Spec.LostSince.Time
	}
	if len(identity.Addresses) == 0 {
		return nil
	}
	// The latest address shows until when earlier addresses were kept.
	last := latest(identity)
	age := lost.Sub(last.LastSeen.Time)
	if age < -clocksDiffer {
		return Refuse(ReasonStaleLedger, "%s: its address %s was last seen at %s, after the node was lost: a clock was wrong, and the age of the address is unknown. Fence it by hand and release its volumes", k, last.CIDR, last.LastSeen.UTC().Format(time.RFC3339))
	}
	if age > f.Policy.MaxAge {
		why := "Fairlead was down"
		if seen := f.Spec.LastSeen; seen != nil && lost.Sub(seen.Time) <= f.Policy.MaxAge {
			why = fmt.Sprintf("its source, %s, had fallen silent", last.Source)
		}
		return Refuse(ReasonStaleLedger, "%s: its address %s was last seen %s before the node was lost (%s at most): %s. Fence it by hand and release its volumes", k, last.CIDR, age.Round(time.Second), f.Policy.MaxAge, why)
	}
	return nil
}

// address refuses an address that others have or had. Earlier addresses count on both sides: blocking one would cut off
// the other machine, whose mounts may still use it.
func (f Facts) address(k key, a netip.Addr) *Refusal {
	for o := range f.others() {
		if o.live() && o.has(a) {
			return Refuse(ReasonAddressInUse, "%s: %s is also an address of %s, which is not lost", k, a, f.nameOf(o))
		}
		if o.mayBe(f) && !o.knownFor(k) {
			return Refuse(ReasonAddressInUse, "%s: %s may belong to the machine that has the node's name now: without a system UUID, both may be one machine, and the address by which the storage knows that machine is not on record", k, a)
		}
	}
	for _, s := range slices.Concat(f.Servers, f.Report.Servers) {
		// A server on the lost node is lost too.
		if (s.Node != f.Node.Name || f.replaced()) && slices.Contains(s.Addresses, a) {
			return Refuse(ReasonAddressInUse, "%s: %s is also an address of %s, which serves the storage", k, a, s.Name)
		}
	}
	return nil
}

// leftover refuses a fence while another object unfences one of its addresses: csi-addons repeats that for all objects
// when it starts. An object of this record is deleted without help.
func (f Facts) leftover(r v1alpha1.Fence, stands bool) *Refusal {
	k := keyOfFence(r)
	for _, n := range f.Fences {
		if f.isForeign(n, k) {
			continue
		}
		if text := n.unreadable(); n.Unfenced && text != "" && !f.ours(n) {
			return Refuse(ReasonLeftoverUnfenced, "%s: NetworkFence %s is Unfenced, and what it unblocks is not understood (%q): csi-addons could unblock the node; delete it", k, n.Name, Clip(text, 100))
		}
		own := slices.IndexFunc(f.Spec.Fences, func(o v1alpha1.Fence) bool { return o.Name == n.Name })
		unfences := n.Unfenced || !stands && own >= 0 && isUnfencing(f.Spec.Fences[own])
		for _, text := range r.CIDRs {
			prefix, err := netip.ParsePrefix(text)
			switch {
			case err != nil || n.Name == r.Name || !unfences || !n.lists(prefix.Addr()):
			case own >= 0 || f.ofEarlierBoot(n):
				return Refuse(ReasonFencing, "%s: the earlier NetworkFence %s would unblock the node and must be gone first", k, n.Name)
			default:
				return Refuse(ReasonLeftoverUnfenced, "%s: NetworkFence %s is Unfenced for %s: csi-addons would unblock the node; delete it", k, n.Name, prefix.Addr())
			}
		}
	}
	return nil
}

// ofEarlierBoot reports whether another record of the node names the fence. Fairlead deletes such a fence without help.
func (f Facts) ofEarlierBoot(n NetworkFence) bool {
	o := f.namedBy(n)
	return o != nil && o.Node.Name == f.Node.Name
}

// contradicted refuses where the storage sees the node's volumes in use from an address that is not on record. A shared
// volume may have clients on other nodes. An unknown client of it counts only if none of the node's addresses is among
// the clients: the session of a machine that is off ends after a while.
func (f Facts) contradicted(k key, identity v1alpha1.StorageIdentity) *Refusal {
	for _, w := range f.Report.Clients {
		if keyOf(w.Volume) != k {
			continue
		}
		own := func(a netip.Addr) bool { return listed([]v1alpha1.StorageIdentity{identity}, a) }
		if w.Volume.Shared && slices.ContainsFunc(w.Addresses, own) {
			continue
		}
		for _, a := range w.Addresses {
			switch {
			case own(a):
			case w.Volume.Shared && f.other(func(o *Other) bool { return o.has(a) }) != nil:
			case w.Volume.Shared:
				return Refuse(ReasonContradicted, "%s: shared volume %s is in use from %s, which is no known node's, and from no address that was recorded of the node", k, w.Volume.PersistentVolume, a)
			default:
				return Refuse(ReasonContradicted, "%s: volume %s is in use from %s, which was not recorded as an address of the node", k, w.Volume.PersistentVolume, a)
			}
		}
	}
	return nil
}

// ours: this machine's record names the NetworkFence.
func (f Facts) ours(n NetworkFence) bool { return recordNames(f.Spec, n) }

func recordNames(s v1alpha1.NodeFenceSpec, n NetworkFence) bool {
	return slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return r.Name == n.Name || strings.HasPrefix(r.Name, n.Name+otherClass) })
}

// live: the node is Ready, or not tainted as out of service.
func (o *Other) live() bool { return o.Node.Exists && (o.Node.Ready || !o.Node.OutOfService) }

// mayBe reports whether the present machine of the node's name may be the machine to fence, under another Node object:
// only system UUIDs can rule that out.
func (o *Other) mayBe(f Facts) bool {
	return o.Node.Exists && o.Node.Name == f.Node.Name && (f.Spec.Boot.SystemUUID == "" || o.Node.Boot.SystemUUID == "")
}

// knownFor reports whether an address of the machine is on record for a storage identity.
func (o *Other) knownFor(k key) bool {
	identity, _ := k.in(o.Spec.Identities)
	return len(identity.Addresses) > 0
}

func (o *Other) command(gate string) string {
	return OverrideCommand(cmp.Or(o.Record, o.Node.Name), gate)
}

// nameOf another machine, for messages.
func (f Facts) nameOf(o *Other) string {
	if o.Node.Name == f.Node.Name {
		return "the machine that has the node's name now"
	}
	return "node " + o.Node.Name
}

// has reports whether an address is or was one of the machine's.
func (o *Other) has(a netip.Addr) bool {
	return slices.Contains(o.Node.Addresses, a) || slices.Contains(o.ClientAddresses, a) || listed(o.Spec.Identities, a)
}

// listed reports whether a ledger has an address.
func listed(ledger []v1alpha1.StorageIdentity, a netip.Addr) bool {
	cidr := HostPrefix(a).String()
	return slices.ContainsFunc(ledger, func(i v1alpha1.StorageIdentity) bool {
		return slices.ContainsFunc(i.Addresses, func(c v1alpha1.ClientAddress) bool { return c.CIDR == cidr })
	})
}

// lists reports whether a fence is about an address, however it is written.
func (n NetworkFence) lists(a netip.Addr) bool {
	return slices.ContainsFunc(n.CIDRs, func(text string) bool {
		p, ok := cephAddresses(text)
		return ok && p.Contains(a.Unmap().WithZone(""))
	})
}

// unreadable is an entry of a fence in no form of an address; "" if there is none.
func (n NetworkFence) unreadable() string {
	i := slices.IndexFunc(n.CIDRs, func(text string) bool { _, ok := cephAddresses(text); return !ok })
	if i < 0 {
		return ""
	}
	return n.CIDRs[i]
}

// isForeign reports whether a fence is of another vendor's storage, which has a block list of its own. Drivers are named after their
// vendor's domain. A fence of an unknown driver is not foreign: the class that names the driver may come back.
func (f Facts) isForeign(n NetworkFence, k key) bool {
	driver := n.Driver
	if i := f.class(n.Class); i >= 0 {
		driver = f.Classes[i].Driver
	}
	if _, protected := f.Policy.Storages(driver); protected || driver == "" {
		return false
	}
	return vendor(driver) != vendor(k.driver)
}

// vendor's domain, in the name of a driver.
func vendor(driver string) string {
	labels := strings.Split(driver, ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}
