// Package nodes makes the simulated nodes of a control plane.
package nodes

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
)

// ManageLabel on a node makes kwok live in it: renew its lease, run its pods.
// Taking the label away is what switching the node off is to a real one; putting
// it back is switching it on.
const (
	ManageLabel      = "type"
	ManageLabelValue = "kwok"
	ManageSelector   = ManageLabel + "=" + ManageLabelValue
)

// Max is how many nodes the addresses below are enough for.
const Max = 3000

// Name is the name of the n-th node, from 1.
func Name(n int) string { return fmt.Sprintf("node-%d", n) }

// Create makes one node.
func Create(ctx context.Context, client kubernetes.Interface, n int, kubeletVersion string, change ...func(*corev1.Node)) error {
	node := build(n, kubeletVersion)
	for _, f := range change {
		f(node)
	}
	_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating node %s: %w", Name(n), err)
	}
	return nil
}

// KubeletHere gives a node the name of this machine as an address, by which the API server reaches kwok. No storage
// system and no CNI takes a DNS name for a node's address.
func KubeletHere(node *corev1.Node) {
	node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: "localhost"})
}

func build(n int, kubeletVersion string) *corev1.Node {
	name := Name(n)
	podCIDRs := podCIDRs(n)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("16"),
		corev1.ResourceMemory:           resource.MustParse("64Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("512Gi"),
		// For instance managers of Longhorn's v2 data engine.
		corev1.ResourceHugePagesPrefix + "2Mi": resource.MustParse("8Gi"),
		// What a /24 of pod addresses is enough for.
		corev1.ResourcePods: resource.MustParse("250"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				ManageLabel:                      ManageLabelValue,
				corev1.LabelHostname:             name,
				corev1.LabelOSStable:             "linux",
				corev1.LabelArchStable:           "amd64",
				"node-role.kubernetes.io/worker": "",
			},
			Annotations: map[string]string{
				// kwok's own mark of its nodes.
				"kwok.x-k8s.io/node": "fake",
				// A kubelet sets this; without it the attach-detach controller
				// takes no notice of the node.
				"volumes.kubernetes.io/controller-managed-attach-detach": "true",
			},
		},
		Spec: corev1.NodeSpec{PodCIDR: podCIDRs[0], PodCIDRs: podCIDRs},
		// kwok keeps what it finds here and fills in the rest.
		Status: corev1.NodeStatus{
			Addresses:   addresses(n),
			Capacity:    capacity,
			Allocatable: capacity.DeepCopy(),
			NodeInfo: corev1.NodeSystemInfo{
				Architecture:            "amd64",
				OperatingSystem:         "linux",
				OSImage:                 "simulated",
				KubeletVersion:          kubeletVersion,
				ContainerRuntimeVersion: "kwok://simulated",
				// By the boot ID one can tell that a node was restarted.
				BootID:     string(uuid.NewUUID()),
				MachineID:  string(uuid.NewUUID()),
				SystemUUID: string(uuid.NewUUID()),
			},
		},
	}
}

// podCIDRs gives every node ranges of its own in both families. kwok gives pods
// addresses from them and would start from the same address on every node if
// they were shared.
func podCIDRs(n int) []string {
	return []string{
		// 10.244.0.0 up to 10.255.255.0.
		netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(244 + n>>8), byte(n), 0}), 24).String(),
		fmt.Sprintf("fd00:10:244:%x::/64", n),
	}
}

func addresses(n int) []corev1.NodeAddress {
	return []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: netip.AddrFrom4([4]byte{172, 30, byte(n >> 8), byte(n)}).String()},
		{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("fd00:172:30::%x", n)},
		{Type: corev1.NodeHostName, Address: Name(n)},
	}
}
