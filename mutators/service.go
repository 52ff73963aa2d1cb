package mutators

import (
	"encoding/json"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/storage"
)

// Service is the view of the Service of a shared volume.
type Service struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Type       string            `json:"type"`
		ClusterIP  string            `json:"clusterIP"`
		ClusterIPs []string          `json:"clusterIPs"`
		Selector   map[string]string `json:"selector"`
	} `json:"spec"`
}

// MutateService makes the Service of a shared volume headless as it is created,
// takes its selector away (kube-proxy and the selector know nothing of Multus
// networks), and records the network: the one value that server pod, endpoint
// and slices of this volume derive from.
//
// Objects: Services with the profile's volume label, in its namespace.
// Condition: servers are on a network. A volume whose server runs already keeps that server's network.
// Source: proposal "Storage Network For RWX Volume", Service.
func MutateService(service Service, running *storage.Server, servers storage.Attachment) Result {
	network, why := servers, "servers are on it"
	if running != nil {
		network, why = running.Network, fmt.Sprintf("server pod %s runs on it", running.Pod)
	}
	annotations, spec := service.Metadata.Annotations, service.Spec
	switch {
	case network.IsZero():
		return unchanged(ReasonNoNetwork, "")
	case annotations[storage.OptOutAnnotation] == "true":
		return skipped(ReasonOptOut, fmt.Sprintf("annotation %s keeps the volume off network %s", storage.OptOutAnnotation, network))
	case spec.Type != "" && spec.Type != "ClusterIP":
		return skipped(ReasonNotClusterIP, fmt.Sprintf("a Service of type %s can't be headless; the volume stays off network %s", spec.Type, network))
	case spec.ClusterIP != "" && spec.ClusterIP != storage.ClusterIPNone:
		return skipped(ReasonFixedAddress, fmt.Sprintf("cluster IP %s was asked for; the volume stays off network %s", spec.ClusterIP, network))
	}
	patch := recordNetwork(annotations, network, spec.Selector)
	reason := ReasonRecorded
	if spec.ClusterIP != storage.ClusterIPNone {
		reason = ReasonHeadless
		patch = append(patch, jsonpatch.NewOperation("add", "/spec/clusterIP", storage.ClusterIPNone))
		if len(spec.ClusterIPs) > 0 {
			patch = append(patch, jsonpatch.NewOperation("remove", "/spec/clusterIPs", nil))
		}
	}
	if len(spec.Selector) > 0 {
		patch = append(patch, jsonpatch.NewOperation("remove", "/spec/selector", nil))
	}
	if len(patch) == 0 {
		return unchanged(ReasonAsItShouldBe, "headless, for "+network.String())
	}
	return mutated(reason, fmt.Sprintf("%s: %s", network, why), patch...)
}

// recordNetwork writes the record, and keeps the selector for the day that the
// Service gets a cluster IP again.
func recordNetwork(annotations map[string]string, network storage.Attachment, selector map[string]string) []jsonpatch.Operation {
	want := map[string]string{}
	if annotations[storage.NetworkAnnotation] != network.String() {
		want[storage.NetworkAnnotation] = network.String()
	}
	if len(selector) > 0 {
		text, err := json.Marshal(selector)
		if err == nil && annotations[storage.SelectorAnnotation] != string(text) {
			want[storage.SelectorAnnotation] = string(text)
		}
	}
	if annotations == nil && len(want) > 0 {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/annotations", want)}
	}
	var patch []jsonpatch.Operation
	for _, key := range []string{storage.NetworkAnnotation, storage.SelectorAnnotation} {
		if value, ok := want[key]; ok {
			patch = append(patch, annotate("/metadata", true, key, value))
		}
	}
	return patch
}
