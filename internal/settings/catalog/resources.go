package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
)

// CSIResources are the resources of Longhorn's CSI containers, by container.
// A container without entry has no requests and limits. Source: longhorn-manager
// types/setting.go, ComponentResourceLimits; controller/setting_controller.go,
// updateSystemManagedCSIComponentsResourceLimits.
const CSIResources Name = "system-managed-csi-components-resource-limits"

func resourceFamily() []Definition {
	return []Definition{{
		Name: CSIResources, Normalize: normalizeCSIResources, Form: csiResourcesForm, Since: "1.11", ByFairlead: true, DangerZone: true, Gate: AtOnce,
		Trait: Resources, Wants: wantsCSIResources,
		Affects: "the CSI Deployments and DaemonSet whose resources it changes; running mounts stay",
	}}
}

// csiContainers are the containers of the setting, by Deployment and, for the last entry, DaemonSet.
var csiContainers = map[string][]string{
	"csi-attacher":        {"csi-attacher"},
	"csi-provisioner":     {"csi-provisioner"},
	"csi-resizer":         {"csi-resizer"},
	"csi-snapshotter":     {"csi-snapshotter"},
	"longhorn-csi-plugin": {"longhorn-csi-plugin", "longhorn-liveness-probe", "node-driver-registrar"},
}

// CSIContainers are the containers of a Deployment or DaemonSet whose resources the setting decides.
func CSIContainers(template string) []string { return csiContainers[template] }

// csiContainer has the names of all containers, sorted.
var csiContainer = func() (names []string) {
	for _, containers := range csiContainers {
		names = append(names, containers...)
	}
	slices.Sort(names)
	return names
}()

const csiResourcesForm = `must be a JSON object of requests and limits by container, like {"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"memory":"128Mi"}}}, or "" for none`

// ParseCSIResources parses system-managed-csi-components-resource-limits.
//
// Longhorn accepts more: it ignores unknown names, also names in other case, and stores values that the API server refuses.
func ParseCSIResources(value string) (map[string]corev1.ResourceRequirements, error) {
	if value = strings.TrimSpace(value); value == "" {
		return nil, nil
	}
	var object map[string]map[string]map[string]jsontext.Value
	if err := jsonv2.Unmarshal([]byte(value), &object); errors.Is(err, jsontext.ErrDuplicateName) {
		return nil, refuse(csiResourcesForm, "a name occurs twice")
	} else if err != nil || object == nil {
		return nil, malformed{form: csiResourcesForm}
	}
	parsed := map[string]corev1.ResourceRequirements{}
	for _, container := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(csiContainer, container) {
			return nil, refuse(csiResourcesForm, "container %q must be one of %s", container, strings.Join(csiContainer, ", "))
		}
		requirements, err := parseRequirements(object[container])
		if err != nil {
			return nil, refuse(csiResourcesForm, "%s: %v", container, err)
		}
		parsed[container] = requirements
	}
	return parsed, nil
}

func parseRequirements(lists map[string]map[string]jsontext.Value) (r corev1.ResourceRequirements, err error) {
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		list, err := parseResources(lists[name])
		switch {
		case err != nil:
			return r, fmt.Errorf("%s: %w", name, err)
		case name == "requests":
			r.Requests = list
		case name == "limits":
			r.Limits = list
		default:
			return r, fmt.Errorf("%q must be requests or limits", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if limit, limited := r.Limits[name]; limited && request.Cmp(limit) > 0 {
			return r, fmt.Errorf("the request of %s must not be more than its limit", name)
		}
	}
	return r, nil
}

// parseResources refuses huge pages and devices, which CSI containers do not use and which have other rules.
func parseResources(list map[string]jsontext.Value) (corev1.ResourceList, error) {
	parsed := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		switch corev1.ResourceName(name) {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		default:
			return nil, fmt.Errorf("%q must be cpu, memory or ephemeral-storage", name)
		}
		text := strings.Trim(string(list[name]), `"`) // a string or a number, as in Kubernetes
		quantity, ok := ParseQuantity(text)
		if !ok {
			return nil, fmt.Errorf("%s: %q must be a quantity like 100m or 128Mi", name, text)
		}
		parsed[corev1.ResourceName(name)] = quantity
	}
	return parsed, nil
}

func normalizeCSIResources(value string) (string, error) {
	parsed, err := ParseCSIResources(value)
	return ResourcesTrait(parsed), err
}

// wantsCSIResources asks containers without entry to have no resources, as Longhorn does.
func wantsCSIResources(value string, c Component, _ Nodes) (string, bool) {
	containers, known := csiContainers[c.Name]
	isPlugin := len(containers) > 1
	if !known || isPlugin != (c.Kind == DaemonSetComponent) || !isPlugin && c.Kind != Deployment {
		return "", false
	}
	parsed, err := ParseCSIResources(value)
	if err != nil {
		return "", false
	}
	maps.DeleteFunc(parsed, func(container string, _ corev1.ResourceRequirements) bool {
		return !slices.Contains(containers, container)
	})
	return ResourcesTrait(parsed), true
}

// ResourcesTrait writes the requests and limits of containers by name: the normal form of the setting.
// Other containers, and containers without resources, are left out; "" if no container is left.
func ResourcesTrait(containers map[string]corev1.ResourceRequirements) string {
	object := map[string]map[string]map[string]string{}
	for container, r := range containers {
		lists := map[string]map[string]string{}
		for list, resources := range map[string]corev1.ResourceList{"limits": r.Limits, "requests": r.Requests} {
			if len(resources) > 0 {
				lists[list] = quantityTexts(resources)
			}
		}
		if slices.Contains(csiContainer, container) && len(lists) > 0 {
			object[container] = lists
		}
	}
	if len(object) == 0 {
		return ""
	}
	text, err := jsonv2.Marshal(object, jsonv2.Deterministic(true))
	if err != nil {
		return err.Error() // impossible for maps of text
	}
	return string(text)
}
