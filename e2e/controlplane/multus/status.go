package multus

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
)

// defaultNetwork and defaultInterface are what most clusters call the pod
// network; "cbr0" is the name in flannel's configuration.
const (
	defaultNetwork   = "cbr0"
	defaultInterface = "eth0"
)

// defaultStatus is the entry for the pod network, always the first.
func defaultStatus(pod *corev1.Pod) netv1.NetworkStatus {
	var ips []string
	for _, ip := range pod.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	if len(ips) == 0 {
		ips = []string{pod.Status.PodIP}
	}
	return netv1.NetworkStatus{
		Name: defaultNetwork, Interface: defaultInterface,
		IPs: ips, Mac: macOf(pod, defaultInterface), Default: true,
	}
}

// networkStatus is the entry for one network that the pod asked for.
func networkStatus(pod *corev1.Pod, element netv1.NetworkSelectionElement, addresses []netip.Addr) netv1.NetworkStatus {
	status := netv1.NetworkStatus{
		Name:      element.Namespace + "/" + element.Name,
		Interface: element.InterfaceRequest,
		Mac:       element.MacRequest,
	}
	for _, address := range addresses {
		status.IPs = append(status.IPs, address.String())
	}
	if status.Mac == "" {
		status.Mac = macOf(pod, element.InterfaceRequest)
	}
	return status
}

// macOf makes a locally administered address that stays the same as long as the
// pod's address does, which is the lifetime of its sandbox.
func macOf(pod *corev1.Pod, interfaceName string) string {
	hash := fnv.New64a()
	// Writing to a hash can't fail.
	_, _ = fmt.Fprintf(hash, "%s/%s/%s", pod.UID, pod.Status.PodIP, interfaceName)
	sum := hash.Sum(nil)
	return fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3])
}

// encodeStatus writes the annotation down to the white space as Multus does:
// readers that take it apart as text must see here what they see in production.
func encodeStatus(statuses []netv1.NetworkStatus) (string, error) {
	entries := make([]string, 0, len(statuses))
	for _, status := range statuses {
		entry, err := json.MarshalIndent(status, "", "    ")
		if err != nil {
			return "", fmt.Errorf("encoding the status of network %s: %w", status.Name, err)
		}
		entries = append(entries, string(entry))
	}
	return "[" + strings.Join(entries, ",") + "]", nil
}
