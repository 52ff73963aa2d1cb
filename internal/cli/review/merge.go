package review

import (
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// merged is what `kubectl apply` makes of a manifest and the existing object: the three-way merge with the
// configuration that was applied last, strategic for kinds of Kubernetes.
func merged(scheme *runtime.Scheme, manifest, existing *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	last := []byte(existing.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	wanted, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	current, err := json.Marshal(existing)
	if err != nil {
		return nil, err
	}
	document, err := threeWay(scheme, manifest, last, wanted, current)
	if err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	return after, after.UnmarshalJSON(document)
}

func threeWay(scheme *runtime.Scheme, manifest *unstructured.Unstructured, last, wanted, current []byte) ([]byte, error) {
	typed, err := scheme.New(manifest.GroupVersionKind())
	if builtIn := err == nil && isBuiltIn(manifest); !builtIn {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(last, wanted, current)
		if err != nil {
			return nil, err
		}
		return jsonpatch.MergePatch(current, patch)
	}
	about, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(last, wanted, current, about, true)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(current, patch, typed)
}

// isBuiltIn tells whether the API server knows how to merge the kind's lists: it does not for custom resources.
func isBuiltIn(o *unstructured.Unstructured) bool {
	group := o.GroupVersionKind().Group
	return group == "" || group == "apps" || group == "storage.k8s.io"
}
