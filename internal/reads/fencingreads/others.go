package fencingreads

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
)

// ownAddresses: fences block addresses of pods. The address of an ended pod may belong to another pod already.
func ownAddresses(p config.FencingProfile) bool { return p.Network != "" }

// addPods adds the storage's pods to a snapshot, those whose own addresses a fence may block from precise.
func (r *FenceReader) addPods(ctx context.Context, s *snapshot, precise client.Reader) error {
	s.selfFencing = map[string]string{}
	clients := map[string][]netip.Addr{}
	for _, p := range r.profiles() {
		from := r.objects
		if ownAddresses(p) {
			from = precise
		}
		pods, err := r.storagePods(ctx, from, p.Namespace)
		if err != nil {
			return err
		}
		s.selfFencing[p.Name] = firstOf(pods)
		for i := range pods {
			pod := &pods[i]
			addresses, node := podAddresses(pod), pod.Spec.NodeName
			// All pods of the storage system count, not only its clients: no fence may block any of them.
			clients[node] = append(clients[node], addresses...)
			if selects(p.Storage().ServerLabels, pod) {
				s.servers = append(s.servers, fence.Server{Name: "pod " + pod.Namespace + "/" + pod.Name, Node: node, Addresses: append(addresses, hostAddresses(pod)...)})
			}
		}
	}
	slices.SortFunc(s.servers, func(a, b fence.Server) int { return strings.Compare(a.Name, b.Name) })
	for i := range s.machines {
		if s.machines[i].Node.Exists {
			s.machines[i].ClientAddresses = clients[s.machines[i].Node.Name]
		}
	}
	return nil
}

// addOthers adds what a fence could hurt: all machines, and the storage's servers. The decisions of a round share them.
func (r *FenceReader) addOthers(f *fence.Facts) {
	f.Servers, f.SelfFencing, f.Machines = r.snapshot.servers, r.snapshot.selfFencing, r.snapshot.machines
}

// storagePods of a storage system that have not ended.
func (r *FenceReader) storagePods(ctx context.Context, from client.Reader, namespace string, which ...client.ListOption) ([]corev1.Pod, error) {
	list, err := readAll(ctx, from, &corev1.PodList{}, append(which, client.InNamespace(namespace))...)
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return reads.Ended(&pod) }), err
}

// storagePodsOn one node, by namespace; and for each profile a pod, on any node, of a driver that fences by itself.
func (r *FenceReader) storagePodsOn(ctx context.Context, node string) (byNamespace map[string][]corev1.Pod, selfFencing map[string]string, err error) {
	byNamespace, selfFencing = map[string][]corev1.Pod{}, map[string]string{}
	for _, p := range r.profiles() {
		pods, err := r.storagePods(ctx, r.objects, p.Namespace, client.MatchingFields{reads.NodeField: node})
		if err != nil {
			return nil, nil, err
		}
		var which []client.ListOption
		if r.indexed {
			which = append(which, client.MatchingFields{selfFencer: "true"})
		}
		fencers, err := r.storagePods(ctx, r.objects, p.Namespace, which...)
		if err != nil {
			return nil, nil, err
		}
		selfFencing[p.Name], byNamespace[p.Namespace] = firstOf(fencers), pods
	}
	return byNamespace, selfFencing, nil
}

// nodeIDs are the IDs of a node, by driver.
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

// selects reports whether one of several sets of labels selects a pod.
func selects(sets []map[string]string, pod *corev1.Pod) bool {
	return slices.ContainsFunc(sets, func(set map[string]string) bool { return labels.SelectorFromSet(set).Matches(labels.Set(pod.Labels)) })
}

// podAddresses are a pod's addresses on all networks.
func podAddresses(pod *corev1.Pod) []netip.Addr {
	var texts []string
	for _, ip := range pod.Status.PodIPs {
		texts = append(texts, ip.IP)
	}
	reported, err := multus.ReportedInterfaces(pod.Annotations)
	if err != nil {
		reported = nil // as if Multus had reported nothing yet
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

// addressesOn one network, by Multus' report, on any interface.
func addressesOn(pod *corev1.Pod, network string) []string {
	reported, err := multus.ReportedInterfaces(pod.Annotations)
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

// firstOf the pods of drivers that fence by themselves, by name; "" is none.
func firstOf(pods []corev1.Pod) (first string) {
	for i := range pods {
		if name := pods[i].Name; caches.FencesItself(&pods[i]) && (first == "" || name < first) {
			first = name
		}
	}
	return first
}
