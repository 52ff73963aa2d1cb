package mutators

import (
	"encoding/json"
	"fmt"
	"maps"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
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

// MutateService makes the Service of a shared volume fit the network of its server: headless and without a selector on a
// storage network (kube-proxy and selectors ignore Multus networks), with a cluster IP and a selector on the cluster
// network. The Service records the network and the fixed addresses. Server pod, endpoint and slices derive from them.
//
// Objects: Services with Longhorn's volume label, in its namespace.
// Condition: a record exists. The network is the volume's own or the default of servers; a volume keeps the network of a
// server that runs already.
// Source: proposal "Storage Network For RWX Volume", Service; longhorn#13695;
// longhorn-manager v1.7.2 controller/share_manager_controller.go createServiceManifest.
func MutateService(names longhorn.Names, service Service, running *rwx.Server, record rollout.Record, request rwx.Request) Result {
	if record.Unknown {
		return unchanged(ReasonNotRecorded, "")
	}
	place, ready := record.Place(request)
	why := "new servers use the network"
	if ready && place.Network.ForVolumes() {
		why = "requested by " + request.Source
	}
	if running != nil {
		if !running.IsOn(place.Network) {
			place = multus.Placement{Network: running.Network}
		}
		ready, why = true, fmt.Sprintf("server pod %s runs on the network", running.Pod)
	}
	result := makeHeadless(service, place, why)
	if place.Network.IsZero() {
		result = makeClusterIP(names, service)
	}
	if ready && request.Problem == "" {
		return result
	}
	return result.waiting(request, place)
}

// waiting says why the volume is not on its requested network, and when it will be.
func (r Result) waiting(request rwx.Request, place multus.Placement) Result {
	meanwhile := "the cluster network"
	if !place.Network.IsZero() {
		meanwhile = place.Network.Network.String()
	}
	detail := fmt.Sprintf("%s requests network %s, which not every CSI plugin pod has joined; the volume stays on %s until all have joined and the volume is detached", request.Source, request.Network, meanwhile)
	if request.Problem != "" {
		detail = fmt.Sprintf("%s; the volume stays on %s", request.Problem, meanwhile)
	}
	if r.Outcome == Unchanged {
		return skipped(ReasonVolumeWaits, detail)
	}
	return r.withWarnings(skipped(ReasonVolumeWaits, detail))
}

func makeHeadless(service Service, place multus.Placement, why string) Result {
	network := place.Network
	annotations, spec := service.Metadata.Annotations, service.Spec
	switch {
	case annotations[rwx.OptOutAnnotation] == "true":
		return skipped(ReasonOptOut, fmt.Sprintf("annotation %s keeps the volume off network %s", rwx.OptOutAnnotation, network))
	case spec.Type != "" && spec.Type != "ClusterIP":
		return skipped(ReasonNotClusterIP, fmt.Sprintf("a Service of type %s can't be headless; the volume stays off network %s", spec.Type, network))
	case spec.ClusterIP != "" && spec.ClusterIP != rwx.ClusterIPNone:
		return skipped(ReasonFixedAddress, fmt.Sprintf("cluster IP %s was requested; the volume stays off network %s", spec.ClusterIP, network))
	}
	patch := recordPlacement(annotations, place, spec.Selector)
	reason := ReasonRecorded
	if spec.ClusterIP != rwx.ClusterIPNone {
		reason = ReasonHeadless
		patch = append(patch, jsonpatch.NewOperation("add", "/spec/clusterIP", rwx.ClusterIPNone))
		if len(spec.ClusterIPs) > 0 {
			patch = append(patch, jsonpatch.NewOperation("remove", "/spec/clusterIPs", nil))
		}
	}
	if len(spec.Selector) > 0 {
		patch = append(patch, jsonpatch.NewOperation("remove", "/spec/selector", nil))
	}
	if len(patch) == 0 {
		return unchanged(ReasonUpToDate, "headless, for "+network.String())
	}
	return mutated(reason, fmt.Sprintf("%s: %s", network, why), patch...)
}

// makeClusterIP turns a headless Service of the storage system into its Service for the cluster network. A headless
// Service with a selector is not the storage system's, and stays.
func makeClusterIP(names longhorn.Names, service Service) Result {
	spec, meta := service.Spec, service.Metadata
	selector := names.ServiceSelector(meta.Labels)
	switch {
	case spec.ClusterIP != rwx.ClusterIPNone || len(spec.Selector) > 0 || len(selector) == 0:
		return unchanged(ReasonNoNetwork, "")
	case meta.Annotations[rwx.OptOutAnnotation] == "true":
		return skipped(ReasonOptOut, fmt.Sprintf("annotation %s keeps the Service headless, though no network is applied", rwx.OptOutAnnotation))
	}
	patch := recordPlacement(meta.Annotations, multus.Placement{}, nil)
	patch = append(patch, jsonpatch.NewOperation("remove", "/spec/clusterIP", nil))
	if len(spec.ClusterIPs) > 0 {
		patch = append(patch, jsonpatch.NewOperation("remove", "/spec/clusterIPs", nil))
	}
	patch = append(patch, jsonpatch.NewOperation("add", "/spec/selector", selector))
	return mutated(ReasonClusterIP, "new servers are on the cluster network", patch...)
}

// recordPlacement writes the record, and keeps the selector for a later change back to a cluster IP.
func recordPlacement(annotations map[string]string, place multus.Placement, selector map[string]string) []jsonpatch.Operation {
	want := map[string]string{
		rwx.NetworkAnnotation:   place.Network.String(),
		rwx.AddressesAnnotation: place.Identity.Addresses,
		rwx.MACAnnotation:       place.Identity.MAC,
	}
	if len(selector) > 0 {
		if text, err := json.Marshal(selector); err == nil {
			want[rwx.SelectorAnnotation] = string(text)
		}
	}
	if annotations == nil {
		maps.DeleteFunc(want, func(_, value string) bool { return value == "" })
		if len(want) == 0 {
			return nil
		}
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/annotations", want)}
	}
	var patch []jsonpatch.Operation
	for _, key := range []string{rwx.NetworkAnnotation, rwx.AddressesAnnotation, rwx.MACAnnotation, rwx.SelectorAnnotation} {
		value, wanted := want[key]
		have, there := annotations[key]
		switch {
		case wanted && value == "" && there:
			patch = append(patch, jsonpatch.NewOperation("remove", "/metadata/annotations/"+pointer.Replace(key), nil))
		case value != "" && have != value:
			patch = append(patch, annotate("/metadata", true, key, value))
		}
	}
	return patch
}
