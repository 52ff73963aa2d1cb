package compare

import (
	"maps"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// normalise takes out of an object what differs from run to run: identities, times, versions, addresses, and what the API
// server fills in alike for everybody.
func normalise(o *unstructured.Unstructured) {
	meta, _, _ := unstructured.NestedMap(o.Object, "metadata")
	kept := map[string]any{}
	for _, field := range []string{"name", "labels", "annotations", "ownerReferences"} {
		if value, found := meta[field]; found {
			kept[field] = value
		}
	}
	o.Object["metadata"] = kept
	for _, path := range unstable[o.GetKind()] {
		remove(o.Object, path)
	}
	builtBySettings(o)
	o.Object, _ = stable(o.Object).(map[string]any)
}

// unstable fields by kind, besides the metadata. A * stands for each element of a list.
var unstable = map[string][]string{
	"DaemonSet":        {"status", "metadata.annotations.deprecated\\.daemonset\\.template\\.generation"},
	"Deployment":       {"status", "metadata.annotations.deployment\\.kubernetes\\.io/revision"},
	"Pod":              {"status", "spec.nodeName", "metadata.annotations.k8s\\.v1\\.cni\\.cncf\\.io/network-status"},
	"Service":          {"status"},
	"Endpoints":        {"metadata.annotations.endpoints\\.kubernetes\\.io/last-change-trigger-time"},
	"ShareManager":     {"status.ownerID"},
	"VolumeAttachment": {"status"},
	"Setting":          {"metadata.annotations.longhorn\\.io/configmap-resource-version"},
}

// remove a field by its path, dots in a name escaped.
func remove(object map[string]any, path string) {
	parts := strings.Split(strings.ReplaceAll(path, `\.`, "\x00"), ".")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "\x00", ".")
	}
	unstructured.RemoveNestedField(object, parts...)
}

// plugin is the DaemonSet that the stand-in has whole: nodes mount in its network.
const plugin = "longhorn-csi-plugin"

// builtBySettings keeps of pods, and of templates of pods, what settings decide. The rest of a container, such as its mounts,
// is the real manager's own affair: the stand-in's pods have none of that.
func builtBySettings(o *unstructured.Unstructured) {
	path := []string{"spec"}
	switch {
	case o.GetName() == plugin:
		return
	case o.GetKind() == "Deployment", o.GetKind() == "DaemonSet":
		path = []string{"spec", "template", "spec"}
	case o.GetKind() != "Pod":
		return
	}
	spec, _, _ := unstructured.NestedMap(o.Object, path...)
	kept := only(spec, "priorityClassName", "tolerations", "nodeSelector", "restartPolicy", "serviceAccountName")
	kept["volumes"] = each(spec["volumes"], func(volume map[string]any) map[string]any {
		if volume["name"] != "log" {
			return nil
		}
		return volume
	})
	kept["containers"] = each(spec["containers"], func(container map[string]any) map[string]any {
		reduced := only(container, "name", "image", "resources")
		if container["name"] == "instance-manager" {
			reduced["args"] = container["args"]
		}
		if probe, ok := container["livenessProbe"].(map[string]any); ok {
			reduced["livenessProbe"] = only(probe, "periodSeconds", "timeoutSeconds", "failureThreshold")
		}
		return reduced
	})
	_ = unstructured.SetNestedMap(o.Object, kept, path...)
}

func only(object map[string]any, fields ...string) map[string]any {
	kept := map[string]any{}
	for _, field := range fields {
		if value, found := object[field]; found {
			kept[field] = value
		}
	}
	return kept
}

// each item of a list as reduce leaves it, without those that it drops.
func each(list any, reduce func(map[string]any) map[string]any) []any {
	reduced := []any{}
	items, _ := list.([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		if object = reduce(object); object != nil {
			reduced = append(reduced, object)
		}
	}
	return reduced
}

// Texts that differ from run to run.
var (
	address    = regexp.MustCompile(`^(nfs://)?\[?(\d+\.\d+\.\d+\.\d+|[0-9a-f]*:[0-9a-f:]+)\]?(/.*)?$`)
	identifier = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// stable replaces generated texts everywhere: addresses by the network they are of, identifiers by a word. Names of keys
// that are generated are replaced too.
func stable(value any) any {
	switch value := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for key := range maps.Keys(value) {
			if item := stable(value[key]); item != nil {
				result[key] = item
			}
		}
		if len(result) == 0 {
			return nil // the API server keeps empty ones of some, and drops those of others
		}
		return result
	case []any:
		var result []any
		for _, item := range value {
			result = append(result, stable(item))
		}
		if len(result) == 0 {
			return nil
		}
		return result
	case string:
		return stableText(value)
	case int64:
		return float64(value) // as it is read from a file
	}
	return value
}

func stableText(text string) string {
	switch {
	case identifier.MatchString(text):
		return "(identifier)"
	case address.MatchString(text):
		return address.ReplaceAllString(text, "${1}("+networkOf(address.FindStringSubmatch(text)[2])+")${3}")
	}
	return text
}

// networkOf an address of the sandbox.
func networkOf(address string) string {
	for prefix, network := range map[string]string{"10.96.": "cluster IP", "10.244.": "pod", "192.168.50.": "storage-net", "192.168.60.": "backup-net"} {
		if strings.HasPrefix(address, prefix) {
			return network + " address"
		}
	}
	if strings.Contains(address, ":") {
		return "IPv6 address"
	}
	return address
}
