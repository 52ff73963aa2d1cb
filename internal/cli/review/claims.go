package review

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// withClaims adds the first PersistentVolumeClaim of each template of a StatefulSet: the claims are never in a file, and
// their annotations request networks.
func withClaims(manifests []manifest) []manifest {
	var all []manifest
	for _, m := range manifests {
		all = append(all, m)
		if m.GetKind() != "StatefulSet" || m.GroupVersionKind().Group != "apps" {
			continue
		}
		templates, _, _ := unstructured.NestedSlice(m.Object, "spec", "volumeClaimTemplates")
		for _, t := range templates {
			content, ok := t.(map[string]any)
			if !ok {
				continue
			}
			claim := &unstructured.Unstructured{Object: content}
			claim.SetAPIVersion("v1")
			claim.SetKind(storage.ClaimKind)
			claim.SetNamespace(m.GetNamespace())
			claim.SetName(claim.GetName() + "-" + m.GetName() + "-0")
			all = append(all, manifest{Unstructured: claim, file: m.file, line: m.line, created: true})
		}
	}
	return all
}
