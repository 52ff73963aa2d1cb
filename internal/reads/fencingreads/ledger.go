package fencingreads

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// identityKey is a storage system that a node is a client of.
type identityKey struct{ driver, clusterID string }

// ledgerSources is what the addresses of one node's storage clients are read from.
type ledgerSources struct {
	view    *FenceView
	addons  fenceClasses
	classes []storagev1.StorageClass
	// nodeIDs has the node's ID for each registered driver.
	nodeIDs map[string]string
	// pods of the storage systems on the node, by namespace.
	pods map[string][]corev1.Pod
	// unattached drivers cannot be protected.
	unattached []string
}

// ledger reads the sources for a Ready node: each storage identity that the node may use, and its addresses.
func (r *FenceReader) ledger(ctx context.Context, v *FenceView, classes fenceClasses) ([]v1alpha1.StorageIdentity, error) {
	s := ledgerSources{view: v, addons: classes}
	var err error
	if s.classes, err = r.storageClasses(ctx); err != nil {
		return nil, err
	}
	if s.unattached, err = Unattached(ctx, r.objects, r.Protects); err != nil {
		return nil, err
	}
	if s.nodeIDs, err = r.nodeIDs(ctx, v.Facts.Node.Name); err != nil {
		return nil, err
	}
	if s.pods, v.Facts.SelfFencing, err = r.storagePodsOn(ctx, v.Facts.Node.Name); err != nil {
		return nil, err
	}
	var ledger []v1alpha1.StorageIdentity
	for _, id := range r.identities(s) {
		i, err := r.identity(ctx, s, id)
		if err != nil {
			return nil, err
		}
		used := slices.ContainsFunc(v.Facts.Holding, func(h v1alpha1.HeldVolume) bool { return h.Driver == id.driver && h.ClusterID == id.clusterID })
		if _, registered := s.nodeIDs[id.driver]; len(i.Addresses) == 0 && !used && !registered {
			continue // nothing of the storage system can be on this node
		}
		i.Secret = r.secret(s, id)
		ledger = append(ledger, i)
	}
	return ledger, nil
}

// identities that a node may come to use: those of its volumes, of all StorageClasses, and of all NetworkFenceClasses.
func (r *FenceReader) identities(s ledgerSources) []identityKey {
	seen := map[identityKey]bool{}
	for _, h := range s.view.Facts.Holding {
		seen[identityKey{h.Driver, h.ClusterID}] = true
	}
	for i := range s.classes {
		seen[storageClassIdentity(&s.classes[i])] = true
	}
	for i := range s.addons {
		if id := classIdentity(&s.addons[i]); r.Protects(id.driver) {
			seen[id] = true
		}
	}
	all := make([]identityKey, 0, len(seen))
	for id := range seen {
		all = append(all, id)
	}
	slices.SortFunc(all, func(a, b identityKey) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.clusterID, b.clusterID))
	})
	return all
}

// identity reads the configured source only. Another source may name an address that Ceph's clients do not use, and a
// fence of such an address stops nothing.
func (r *FenceReader) identity(ctx context.Context, s ledgerSources, id identityKey) (v1alpha1.StorageIdentity, error) {
	i := v1alpha1.StorageIdentity{Driver: id.driver, ClusterID: id.clusterID, Class: s.addons.class(id)}
	p, _ := r.config.Profile(id.driver)
	var cidrs []string
	var err error
	switch {
	case p.Source() != fence.SourceCSIAddonsNode:
		cidrs, i.Problem = profileAddresses(p, id.driver, s.view.Node, s.pods[p.Namespace])
	case i.Class == "":
		i.Problem = fmt.Sprintf("no NetworkFenceClass is for %s and clusterID %q: create one, so that csi-addons reports by which addresses the storage knows the node; if those are the Node object's own, set fencing.profiles[%s].addresses to node", id.driver, id.clusterID, p.Name)
		if others := s.addons.of(id.driver); len(others) > 0 {
			i.Problem += fmt.Sprintf(". The driver's classes are for other clusterIDs (%s): if ceph-csi maps this one to another (cluster-mapping.json), as for volumes that disaster recovery has restored, the new class needs this clusterID and a Secret of the cluster that it is mapped to", fence.Few(others))
		}
	default:
		if i.ClientID, cidrs, err = r.clients(ctx, s, id, p.Namespace); err == nil && len(cidrs) == 0 {
			i.Problem = fmt.Sprintf("csi-addons has reported no address of the node since it booted for NetworkFenceClass %s: csi-addons' controller manager must run, its sidecar in the plugin pod of %s on the node, and the CSIAddonsNode be Connected: kubectl -n %s get csiaddonsnodes -o yaml", i.Class, id.driver, p.Namespace)
			if others := s.addons.of(id.driver); len(others) > 1 {
				i.Problem += fmt.Sprintf("; and a class of the driver that is broken, of a wrong Secret or a cluster that is gone, silences them all (%s): csi-addons' log names it; repair or delete it", fence.Few(others))
			}
		}
	}
	if slices.Contains(s.unattached, id.driver) {
		i.Problem = fence.Unattached + ": " + fence.UnattachedDo
	}
	i.Addresses = clientAddresses(p.Source(), cidrs)
	return i, err
}

// profileAddresses are the addresses of the driver's client pods on the node: on the configured network, or of the node
// itself; else the problem. An address on the cluster network never counts: the storage sees an address that many pods share.
func profileAddresses(p config.FencingProfile, driver string, node *corev1.Node, pods []corev1.Pod) (cidrs []string, problem string) {
	clients := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return !selects(p.Storage().ClientPods(driver), &pod)
	})
	if len(clients) == 0 {
		return nil, fmt.Sprintf("no client pod of %s is on the node in namespace %s", driver, p.Namespace)
	}
	for i := range clients {
		pod := &clients[i]
		var of []string
		switch {
		case p.Network == "" && pod.Spec.HostNetwork:
			if of = internalAddresses(node); len(of) == 0 {
				problem = "the node has no internal address"
			}
		case p.Network == "":
			problem = fmt.Sprintf("client pod %s is on the cluster network, so the Node's addresses are not its own: remove addresses: node from fencing.profiles[%s]", pod.Name, p.Name)
		case pod.Spec.HostNetwork:
			problem = fmt.Sprintf("client pod %s is on the host network, but fencing.profiles[%s].network is %s: which of the node's addresses the storage sees is not known; remove network", pod.Name, p.Name, p.Network)
		default:
			if of = addressesOn(pod, p.Network); len(of) == 0 {
				problem = fmt.Sprintf("Multus reports no address of client pod %s on network %s, which fencing.profiles[%s].network names", pod.Name, p.Network, p.Name)
			}
		}
		if problem != "" {
			return nil, problem // a fence of the other addresses would miss this pod
		}
		cidrs = append(cidrs, of...)
	}
	return cidrs, ""
}

// clientAddresses in CIDR form, each once. An address that can't be parsed stays, so that fencing is refused because of
// it, not done without it.
func clientAddresses(source string, texts []string) []v1alpha1.ClientAddress {
	var addresses []v1alpha1.ClientAddress
	slices.Sort(texts)
	for _, text := range texts {
		if p, err := fence.ParseClientCIDR(text); err == nil {
			text = p.String()
		}
		if !slices.ContainsFunc(addresses, func(a v1alpha1.ClientAddress) bool { return a.CIDR == text }) {
			addresses = append(addresses, v1alpha1.ClientAddress{CIDR: text, Source: source})
		}
	}
	return addresses
}

// internalAddresses of a node, of all families.
func internalAddresses(node *corev1.Node) []string {
	var cidrs []string
	for _, a := range node.Status.Addresses {
		if address, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			cidrs = append(cidrs, fence.HostPrefix(address).String())
		}
	}
	return cidrs
}
