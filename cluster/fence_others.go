package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/fence"
	"github.com/fairlead-io/fairlead/storage"
)

// addOthers gathers what a fence could hurt: the other machines, the storage's
// servers, and the fences that there are.
func (r *FenceReader) addOthers(ctx context.Context, v *FenceView) error {
	f := &v.Facts
	nodes, err := r.otherNodes(ctx)
	if err != nil {
		return err
	}
	records, err := r.otherRecords(ctx, v.unsettled)
	if err != nil {
		return err
	}
	f.Servers, f.SelfFencing = nil, map[string]string{}
	clients := map[string][]netip.Addr{}
	for _, p := range r.profiles() {
		from := r.objects
		if r.decides && p.Network != "" { // the address of a pod that ended may be another pod's already
			from = NewLive(r.live)
		}
		pods, err := r.storagePods(ctx, from, p.Namespace)
		if err != nil {
			return err
		}
		f.SelfFencing[p.Name] = firstOf(pods)
		for i := range pods {
			pod := &pods[i]
			// Every pod of the storage system, not only its clients: none may lose its address.
			if node := pod.Spec.NodeName; node != "" {
				clients[node] = append(clients[node], podAddresses(pod)...)
			}
			if slices.ContainsFunc(p.Storage().ServerLabels, func(set map[string]string) bool { return matches(set, pod.Labels) }) {
				f.Servers = append(f.Servers, fence.Server{Name: "pod " + pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName, Addresses: append(podAddresses(pod), hostAddresses(pod)...)})
			}
		}
	}
	f.Others = f.OthersOf(fence.Machines(nodes, records))
	for i := range f.Others {
		if n := f.Others[i].Node; n.Exists {
			f.Others[i].ClientAddresses = clients[n.Name]
		}
	}
	return nil
}

// storagePods of a storage system that run or will.
func (r *FenceReader) storagePods(ctx context.Context, from client.Reader, namespace string, which ...client.ListOption) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := from.List(ctx, &list, append(which, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", namespace, err)
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return Ended(&pod) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

// storagePodsOn one node, by namespace; and by profile a pod that fences by itself, on any node.
func (r *FenceReader) storagePodsOn(ctx context.Context, node string) (byNamespace map[string][]corev1.Pod, selfFencing map[string]string, err error) {
	byNamespace, selfFencing = map[string][]corev1.Pod{}, map[string]string{}
	for _, p := range r.profiles() {
		pods, err := r.storagePods(ctx, r.objects, p.Namespace, r.by(podNode, node)...)
		if err != nil {
			return nil, nil, err
		}
		fencers := pods
		if r.indexed {
			if fencers, err = r.storagePods(ctx, r.objects, p.Namespace, r.by(selfFencer, "true")...); err != nil {
				return nil, nil, err
			}
		}
		selfFencing[p.Name] = firstOf(fencers)
		byNamespace[p.Namespace] = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.NodeName != node })
	}
	return byNamespace, selfFencing, nil
}

// nodeIDs are the names that drivers have for a node.
func (r *FenceReader) nodeIDs(ctx context.Context, node string) (map[string]string, error) {
	var csi storagev1.CSINode
	if _, err := get(ctx, r.objects, node, &csi); err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for _, d := range csi.Spec.Drivers {
		ids[d.Name] = d.NodeID
	}
	return ids, nil
}

func matches(set, labels map[string]string) bool {
	for key, value := range set {
		if labels[key] != value {
			return false
		}
	}
	return len(set) > 0
}

// podAddresses are all that a pod has, on every network.
func podAddresses(pod *corev1.Pod) []netip.Addr {
	var texts []string
	for _, ip := range pod.Status.PodIPs {
		texts = append(texts, ip.IP)
	}
	reported, err := storage.ReportedInterfaces(pod.Annotations)
	if err != nil {
		reported = nil // as if nothing had been reported yet
	}
	for _, i := range reported {
		texts = append(texts, i.IPs...)
	}
	return parsed(texts)
}

func hostAddresses(pod *corev1.Pod) []netip.Addr {
	var texts []string
	for _, ip := range pod.Status.HostIPs {
		texts = append(texts, ip.IP)
	}
	return parsed(texts)
}

// addressesOn one network, on whatever interface Multus reports for it.
func addressesOn(pod *corev1.Pod, network string) []string {
	reported, err := storage.ReportedInterfaces(pod.Annotations)
	if err != nil {
		return nil
	}
	var cidrs []string
	for _, i := range reported {
		if i.Network != network {
			continue
		}
		for _, a := range parsed(i.IPs) {
			cidrs = append(cidrs, fence.HostPrefix(a).String())
		}
	}
	return cidrs
}

func parsed(texts []string) []netip.Addr {
	var addresses []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, a.Unmap())
		}
	}
	return addresses
}
