package mutators

import (
	"fmt"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// ComponentPod is the view of a pod that the storage system makes: an instance-,
// backing-image- or share-manager.
type ComponentPod struct {
	Metadata ComponentMetadata `json:"metadata"`
	Spec     ComponentSpec     `json:"spec"`
}

// ComponentMetadata is what is read of its metadata.
type ComponentMetadata struct {
	Metadata
	Labels map[string]string `json:"labels"`
}

// ComponentSpec is what settings decide of its spec.
type ComponentSpec struct {
	PodSpec
	NodeName          string               `json:"nodeName"`
	Tolerations       []corev1.Toleration  `json:"tolerations"`
	NodeSelector      map[string]string    `json:"nodeSelector"`
	PriorityClassName string               `json:"priorityClassName"`
	Priority          *int32               `json:"priority"`
	PreemptionPolicy  *string              `json:"preemptionPolicy"`
	Containers        []ComponentContainer `json:"containers"`
}

// ComponentContainer is what settings decide of a container.
type ComponentContainer struct {
	Resources *ComponentResources `json:"resources"`
}

// ComponentResources of a container.
type ComponentResources struct {
	Requests corev1.ResourceList `json:"requests"`
	Limits   corev1.ResourceList `json:"limits"`
}

// MutateComponent brings a pod of the storage system in line with the settings
// as it is created, so that it need not be restarted for them. Of what a setting
// does not decide, and of what others have put there, nothing changes.
//
// What makes up the storage system's own command line (probes, memory and CPUs
// of the SPDK daemon, the directory of logs) is its own to build.
//
// Objects: pods with the profile's labels of instance-, backing-image- and share-managers, in its namespace.
// Condition: a resource sets the setting.
// Source: proposal "Support non-disruptive volume-related setting updates".
func MutateComponent(pod ComponentPod, namespace string, wants ComponentWants) Result {
	if len(wants.By) == 0 {
		return unchanged(ReasonNoSetting, "")
	}
	var m componentChange
	if pod.Metadata.Annotations != nil {
		m.annotations = *pod.Metadata.Annotations
	}
	m.tolerations(pod.Spec, wants)
	m.nodeSelector(pod.Spec, wants)
	m.priorityClass(pod.Spec, wants)
	m.cpuRequest(pod.Spec, wants)
	m.network(pod.Spec, namespace, wants)

	switch {
	case m.annotations.OptOut == "true" && len(m.settings) == 0:
		return unchanged(ReasonOptOut, "")
	case m.annotations.OptOut == "true":
		return skipped(ReasonOptOut, fmt.Sprintf("annotation %s keeps the pod from %s", storage.OptOutAnnotation, strings.Join(m.settings, ", ")))
	case len(m.settings) > 0:
		patch := append(m.annotate(pod.Metadata.Annotations != nil), m.patch...)
		return mutated(ReasonSettings, strings.Join(m.settings, ", "), patch...).withWarnings(m.skipped...)
	case len(m.skipped) > 0:
		return m.skipped[0].withWarnings(m.skipped[1:]...)
	}
	return unchanged(ReasonAsItShouldBe, "")
}

// componentChange gathers what is to be changed, a trait at a time.
type componentChange struct {
	annotations PodAnnotations
	// settings that something is changed for.
	settings []string
	patch    []jsonpatch.Operation
	// written annotations, in order; one that is empty is taken away.
	written [][2]string
	skipped []Result
}

func (m *componentChange) change(by settings.Name, operations ...jsonpatch.Operation) {
	m.settings = append(m.settings, string(by))
	m.patch = append(m.patch, operations...)
}

func (m *componentChange) skip(reason, detail string) {
	m.skipped = append(m.skipped, skipped(reason, detail))
}

// annotate writes the annotations. A pod without any needs the map first, once.
func (m *componentChange) annotate(there bool) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for _, a := range m.written {
		if a[1] == "" {
			operations = append(operations, jsonpatch.NewOperation("remove", "/metadata"+annotationPath(a[0]), nil))
			continue
		}
		operations = append(operations, annotate("/metadata", there, a[0], a[1]))
		there = true
	}
	return operations
}
