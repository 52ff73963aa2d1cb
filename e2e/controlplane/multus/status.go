package multus

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func asks(pod client.Object) bool { return pod.GetAnnotations()[netv1.NetworkAttachmentAnnot] != "" }

// waiting tells whether a pod should have networks and has none yet. On the
// host network there is nothing to attach to, and Multus does nothing at all.
func waiting(pod *corev1.Pod) bool {
	return asks(pod) && !reported(pod) && !pod.Spec.HostNetwork && !sandboxDied(pod) &&
		pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" && pod.DeletionTimestamp == nil
}

// reported tells whether a status says something. Multus leaves an empty list
// when it has detached a sandbox.
func reported(pod *corev1.Pod) bool {
	status := pod.Annotations[netv1.NetworkStatusAnnot]
	return status != "" && status != "[]"
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// sandboxDied tells whether a pod has lost its sandbox and has no other yet.
func sandboxDied(pod *corev1.Pod) bool {
	c := sandboxCondition(pod)
	return c != nil && c.Status == corev1.ConditionFalse
}

func sandboxBegan(pod *corev1.Pod) time.Time {
	if c := sandboxCondition(pod); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

func sandboxCondition(pod *corev1.Pod) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReadyToStartContainers })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// defaultNetwork and defaultInterface are what most clusters call the pod
// network; "cbr0" is the name in flannel's configuration.
const (
	defaultNetwork   = "cbr0"
	defaultInterface = "eth0"
)

// encodeStatus writes the annotation down to the white space as Multus does, the pod network first:
// readers that take it apart as text must see here what they see in production.
func encodeStatus(pod *corev1.Pod, interfaces []attached) (string, error) {
	first := netv1.NetworkStatus{Name: defaultNetwork, Interface: defaultInterface, Mac: macOf(pod, defaultInterface), Default: true}
	for _, ip := range pod.Status.PodIPs {
		first.IPs = append(first.IPs, ip.IP)
	}
	statuses := []netv1.NetworkStatus{first}
	for _, i := range interfaces {
		status := netv1.NetworkStatus{Name: i.Namespace + "/" + i.Name, Interface: i.InterfaceRequest, Mac: i.MacRequest}
		for _, address := range i.addresses {
			status.IPs = append(status.IPs, address.String())
		}
		if status.Mac == "" {
			status.Mac = macOf(pod, i.InterfaceRequest)
		}
		statuses = append(statuses, status)
	}
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

// macOf makes a locally administered address that stays the same as long as the
// pod's address does, which is the lifetime of its sandbox.
func macOf(pod *corev1.Pod, interfaceName string) string {
	hash := fnv.New64a()
	// Writing to a hash can't fail.
	_, _ = fmt.Fprintf(hash, "%s/%s/%s", pod.UID, pod.Status.PodIP, interfaceName)
	sum := hash.Sum(nil)
	return fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3])
}
