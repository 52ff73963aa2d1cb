package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
)

// identityKey is a storage system that a node is a client of.
type identityKey struct{ driver, clusterID string }

// ledgerSources are what addresses are read from, for one node.
type ledgerSources struct {
	view    *FenceView
	addons  csiAddons
	classes []storagev1.StorageClass
	// nodeIDs of the node by driver, where a driver has said how it calls it.
	nodeIDs map[string]string
	// clients are the storage systems' pods on the node, by namespace.
	clients map[string][]corev1.Pod
}

// ledger is what the sources say now of a node that is Ready: each storage
// identity that may be used on it, and the addresses by which it is known there.
func (r *FenceReader) ledger(ctx context.Context, v *FenceView, addons csiAddons) ([]v1alpha1.StorageIdentity, error) {
	s := ledgerSources{view: v, addons: addons}
	var err error
	if s.classes, err = r.storageClasses(ctx); err != nil {
		return nil, err
	}
	if s.nodeIDs, err = r.nodeIDs(ctx, v.Facts.Node.Name); err != nil {
		return nil, err
	}
	if s.clients, err = r.storagePodsOn(ctx, v.Facts.Node.Name); err != nil {
		return nil, err
	}
	var ledger []v1alpha1.StorageIdentity
	for _, id := range r.identities(s) {
		i, used := r.identity(s, id)
		if len(i.Addresses) == 0 && !used {
			continue // nothing of it can be on this node
		}
		i.Class = addons.class(id)
		if i.Secret, err = r.secret(ctx, s, id, i.Class == "" && used); err != nil {
			return nil, err
		}
		ledger = append(ledger, i)
	}
	return ledger, nil
}

// identities that a node may come to use: those of its volumes, and of all
// classes that volumes and fences are made by.
func (r *FenceReader) identities(s ledgerSources) []identityKey {
	seen := map[identityKey]bool{}
	for _, h := range s.view.Facts.Holding {
		seen[identityKey{h.Driver, h.ClusterID}] = true
	}
	for i := range s.classes {
		seen[storageClassIdentity(&s.classes[i])] = true
	}
	for i := range s.addons.classes {
		if id := classIdentity(&s.addons.classes[i]); r.Protects(id.driver) {
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

// identity asks the sources in order; the first that knows an address is
// believed. The address of a pod on the cluster network is none of them: what the
// storage sees is another one, which many pods share.
func (r *FenceReader) identity(s ledgerSources, id identityKey) (i v1alpha1.StorageIdentity, used bool) {
	i = v1alpha1.StorageIdentity{Driver: id.driver, ClusterID: id.clusterID}
	used = slices.ContainsFunc(s.view.Facts.Holding, func(h v1alpha1.HeldVolume) bool {
		return h.Driver == id.driver && h.ClusterID == id.clusterID
	})
	node := s.view.Facts.Node.Name
	clientID, cidrs := s.addons.clients(id, cmp.Or(s.nodeIDs[id.driver], node))
	if len(cidrs) > 0 {
		i.ClientID, i.Addresses = clientID, clientAddresses(fence.SourceCSIAddonsNode, cidrs)
		return i, used
	}
	profile, _ := r.profile(id.driver)
	source, cidrs, problem := profileAddresses(profile, id.driver, s.view.Node, s.clients[profile.Namespace])
	if len(cidrs) > 0 {
		i.Addresses = clientAddresses(source, cidrs)
		return i, used
	}
	i.Problem = problem
	return i, used
}

// profileAddresses are those that the driver's pods on the node have on the
// configured network, or else the node's own; or why there is none.
func profileAddresses(p config.FencingProfile, driver string, node *corev1.Node, pods []corev1.Pod) (source string, cidrs []string, problem string) {
	var clients []corev1.Pod
	for _, pod := range pods {
		if slices.ContainsFunc(p.Storage().ClientPods(driver), func(set map[string]string) bool { return matches(set, pod.Labels) }) {
			clients = append(clients, pod)
		}
	}
	const orClass = "; or create a NetworkFenceClass of the driver, so that csi-addons reports its clients"
	if len(clients) == 0 {
		return "", nil, fmt.Sprintf("no client pod of %s is on the node in namespace %s%s", driver, p.Namespace, orClass)
	}
	for i := range clients {
		pod := &clients[i]
		switch {
		case pod.Spec.HostNetwork && p.Network != "":
			problem = fmt.Sprintf("client pod %s is on the host network, but fencing.profiles[%s].network is %s: which of the node's addresses the storage sees is not known; take the network out of the configuration if it is the node's own address%s", pod.Name, p.Name, p.Network, orClass)
		case pod.Spec.HostNetwork:
			source, cidrs = fence.SourceNode, append(cidrs, internalAddresses(node)...)
			if len(cidrs) == 0 {
				problem = "the node has no internal address"
			}
		case p.Network == "":
			problem = fmt.Sprintf("client pod %s is on the cluster network, where the storage may see it under an address of others; if it has a storage network, set fencing.profiles[%s].network%s", pod.Name, p.Name, orClass)
		default:
			on := addressesOn(pod, p.Network)
			source, cidrs = fence.SourceMultus, append(cidrs, on...)
			if len(on) == 0 {
				problem = fmt.Sprintf("Multus reports no address of client pod %s on network %s, which fencing.profiles[%s].network names", pod.Name, p.Network, p.Name)
			}
		}
		if problem != "" { // one that is not known would not be fenced
			return "", nil, problem
		}
	}
	return source, cidrs, ""
}

// clientAddresses in CIDR form, each once. What can't be read stays as it is, so
// that fencing is refused by it instead of done without it.
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
