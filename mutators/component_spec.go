package mutators

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead-io/fairlead/settings"
)

// nodeSelector makes it exactly the wanted one. A pod that is bound to a node
// already would end at once on one without the labels, and so would the next.
func (m *componentChange) nodeSelector(spec ComponentSpec, wants ComponentWants) {
	by, asked := wants.By[settings.NodeSelector]
	if wants.AddsSelector {
		merged := maps.Clone(spec.NodeSelector)
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, wants.NodeSelector)
		wants.NodeSelector = merged
	}
	switch {
	case !asked, maps.Equal(spec.NodeSelector, wants.NodeSelector):
	case wants.NodeLabels != nil && !hasAll(wants.NodeLabels, wants.NodeSelector):
		m.skip(ReasonNodeLacksLabels, fmt.Sprintf("node %s has not all labels of %q, which %s asks for: label it, or the pod would end at once",
			spec.NodeName, settings.NodeSelectorTrait(wants.NodeSelector), by))
	case len(wants.NodeSelector) == 0:
		m.change(by, jsonpatch.NewOperation("remove", "/spec/nodeSelector", nil))
	default:
		m.change(by, jsonpatch.NewOperation("add", "/spec/nodeSelector", wants.NodeSelector))
	}
}

func hasAll(labels, selector map[string]string) bool {
	for key, value := range selector {
		if had, ok := labels[key]; !ok || had != value {
			return false
		}
	}
	return true
}

// priorityClass changes the name, and takes away what the API server has made of
// the other: it works the priority out anew after webhooks, and refuses a pod that
// has another (k8s.io/kubernetes plugin/pkg/admission/priority).
func (m *componentChange) priorityClass(spec ComponentSpec, wants ComponentWants) {
	by, asked := wants.By[settings.PriorityClassName]
	want := wants.PriorityClass
	switch {
	case !asked, spec.PriorityClassName == want, want == "" && spec.PriorityClassName == wants.DefaultClass:
		return
	case want != "" && !slices.Contains(wants.Classes, want):
		m.skip(ReasonNoSuchClass, fmt.Sprintf("%s says %q: create that PriorityClass, or the pod would be refused", by, want))
		return
	}
	operation := jsonpatch.NewOperation("add", "/spec/priorityClassName", want)
	if want == "" {
		operation = jsonpatch.NewOperation("remove", "/spec/priorityClassName", nil)
	}
	operations := []jsonpatch.Operation{operation}
	if spec.Priority != nil {
		operations = append(operations, jsonpatch.NewOperation("remove", "/spec/priority", nil))
	}
	if spec.PreemptionPolicy != nil {
		operations = append(operations, jsonpatch.NewOperation("remove", "/spec/preemptionPolicy", nil))
	}
	m.change(by, operations...)
}

// cpuRequest of the first container; none is 0.
func (m *componentChange) cpuRequest(spec ComponentSpec, wants ComponentWants) {
	by, asked := wants.By[settings.CPURequest]
	if !asked || len(spec.Containers) == 0 {
		return
	}
	const path = "/spec/containers/0/resources"
	var has ComponentResources
	resources := spec.Containers[0].Resources
	if resources != nil {
		has = *resources
	}
	now, limit, want := has.Requests[corev1.ResourceCPU], has.Limits[corev1.ResourceCPU], wants.CPU
	_, limited := has.Limits[corev1.ResourceCPU]
	requests := map[string]resource.Quantity{string(corev1.ResourceCPU): want}
	switch {
	case now.Cmp(want) == 0:
	case limited && (want.IsZero() || limit.Cmp(want) < 0):
		m.skip(ReasonCPULimit, fmt.Sprintf("%s asks for %s, and the container is limited to %s", by, want.String(), limit.String()))
	case want.IsZero() && has.needsCPU():
		m.skip(ReasonCPULimit, fmt.Sprintf("%s asks for none, and a container with huge pages needs a request of CPU or memory", by))
	case want.IsZero():
		m.change(by, jsonpatch.NewOperation("remove", path+"/requests/cpu", nil))
	case resources == nil:
		m.change(by, jsonpatch.NewOperation("add", path, map[string]any{"requests": requests}))
	case has.Requests == nil:
		m.change(by, jsonpatch.NewOperation("add", path+"/requests", requests))
	default:
		m.change(by, jsonpatch.NewOperation("add", path+"/requests/cpu", want))
	}
}

// needsCPU: the API server refuses huge pages in a container that asks for
// neither CPU nor memory.
func (r ComponentResources) needsCPU() bool {
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		if _, ok := list[corev1.ResourceMemory]; ok {
			return false
		}
	}
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for name := range list {
			if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
				return true
			}
		}
	}
	return false
}
