package webhook

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// may is the right to use the verbs on a kind.
func may(group, resource string, verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}}
}

// mayGet is the right to get one object.
func mayGet(group, resource, name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: []string{"get"}}}
}

func rights(sets ...[]rbacv1.PolicyRule) []rbacv1.PolicyRule { return slices.Concat(sets...) }

// What the reads of package reads need.

func readRecord() []rbacv1.PolicyRule { return may("fairlead.io", "networkrollouts", "get") }

func readServices() []rbacv1.PolicyRule { return may("", "services", "get", "list") }

func readPods() []rbacv1.PolicyRule { return may("", "pods", "list") }

func readSettings() []rbacv1.PolicyRule {
	return rights(may("fairlead.io", "settings", "list"), may("longhorn.io", "settings", "list"))
}

func readLonghornVolumes() []rbacv1.PolicyRule {
	return rights(may("longhorn.io", "volumes", "list"), may("longhorn.io", "volumeattachments", "list"))
}

// readVolumes of Kubernetes, with their attachments.
func readVolumes() []rbacv1.PolicyRule {
	return rights(may("", "persistentvolumes", "list"), may("storage.k8s.io", "volumeattachments", "list"))
}

// readRequest: the objects whose annotations may request a network for a volume.
func readRequest() []rbacv1.PolicyRule {
	return rights(may("", "persistentvolumes", "get", "list"), may("", "persistentvolumeclaims", "get", "list"), may("storage.k8s.io", "storageclasses", "get", "list"))
}

func readRollout() []rbacv1.PolicyRule {
	return rights(readVolumes(), may("", "nodes", "list"), may("k8s.cni.cncf.io", "network-attachment-definitions", "list"))
}

func readRolloutHere() []rbacv1.PolicyRule {
	return rights(readRecord(), readServices(), readPods(), readSettings(), readLonghornVolumes(), may("apps", "daemonsets", "list"), mayGet("apps", "daemonsets", longhorn.DefaultNames().ClientDaemonSet))
}

func readFacts() []rbacv1.PolicyRule {
	return rights(readRollout(), may("", "nodes", "get"), may("scheduling.k8s.io", "priorityclasses", "get", "list"))
}

func readFactsHere(n longhorn.Names) []rbacv1.PolicyRule {
	components := may("apps", "deployments", "list")
	for _, kind := range []string{"engines", "replicas", "backingimagemanagers", "nodes", "instancemanagers"} {
		components = append(components, may("longhorn.io", kind, "list")...)
	}
	// The values that Longhorn's next start writes.
	return rights(readRolloutHere(), components, mayGet("", "configmaps", n.DefaultSettings))
}

// readHolders: who holds a volume, and whether that node is lost.
func readHolders() []rbacv1.PolicyRule {
	return rights(may("fairlead.io", "nodefences", "get", "list", "watch"), may("", "nodes", "get", "list", "watch"),
		may("storage.k8s.io", "volumeattachments", "get", "list", "watch"), may("", "persistentvolumes", "get"))
}

// mayAsk the API server who may override a gate. Nothing is stored.
func mayAsk() []rbacv1.PolicyRule {
	return may("authorization.k8s.io", "subjectaccessreviews", "create")
}

func readNFSServices() []rbacv1.PolicyRule { return may("fairlead.io", "nfsservices", "get") }

// readNFSUses: the PersistentVolumes of a service, and which nodes have them.
func readNFSUses() []rbacv1.PolicyRule { return rights(readNFSServices(), readVolumes()) }

// Merged returns the rights once each: kinds of one group with the same verbs are one rule.
func Merged(all []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	type kind struct{ group, resource, name string }
	verbs := map[kind]map[string]bool{}
	for _, r := range all {
		k := kind{r.APIGroups[0], r.Resources[0], strings.Join(r.ResourceNames, "")}
		if verbs[k] == nil {
			verbs[k] = map[string]bool{}
		}
		for _, v := range r.Verbs {
			verbs[k][v] = true
		}
	}
	var merged []rbacv1.PolicyRule
	for _, k := range slices.SortedFunc(maps.Keys(verbs), func(a, b kind) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.name, b.name), strings.Compare(a.resource, b.resource))
	}) {
		allowed := slices.Sorted(maps.Keys(verbs[k]))
		if k.name != "" {
			merged = append(merged, rbacv1.PolicyRule{APIGroups: []string{k.group}, Resources: []string{k.resource}, ResourceNames: []string{k.name}, Verbs: allowed})
			continue
		}
		i := slices.IndexFunc(merged, func(r rbacv1.PolicyRule) bool {
			return r.APIGroups[0] == k.group && r.ResourceNames == nil && slices.Equal(r.Verbs, allowed)
		})
		if i < 0 {
			merged = append(merged, rbacv1.PolicyRule{APIGroups: []string{k.group}, Resources: []string{k.resource}, Verbs: allowed})
			continue
		}
		merged[i].Resources = append(merged[i].Resources, k.resource)
	}
	return merged
}
