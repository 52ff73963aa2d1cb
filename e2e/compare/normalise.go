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
	normaliseSlices(o)
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

// normaliseSlices names tokens' volumes alike: their names are generated.
func normaliseSlices(o *unstructured.Unstructured) {
	if o.GetKind() != "Pod" {
		return
	}
	isToken := func(item any) bool {
		m, ok := item.(map[string]any)
		name, _ := m["name"].(string)
		return ok && strings.HasPrefix(name, "kube-api-access-")
	}
	keep := func(list []any) (kept []any) {
		for _, item := range list {
			if !isToken(item) {
				kept = append(kept, item)
			}
		}
		return kept
	}
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	if volumes, ok := spec["volumes"].([]any); ok {
		spec["volumes"] = keep(volumes)
	}
	containers, _ := spec["containers"].([]any)
	for _, c := range containers {
		container, ok := c.(map[string]any)
		if mounts, has := container["volumeMounts"].([]any); ok && has {
			container["volumeMounts"] = keep(mounts)
		}
	}
	o.Object["spec"] = spec
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
