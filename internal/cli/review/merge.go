package review

import (
	"fmt"
	"slices"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// merged is what `kubectl apply` makes of a manifest and the existing object: the three-way merge with the
// configuration that was applied last, strategic for kinds of Kubernetes.
func merged(scheme *runtime.Scheme, manifest, existing *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wanted, err := manifest.MarshalJSON()
	if err != nil {
		return nil, err
	}
	current, err := existing.MarshalJSON()
	if err != nil {
		return nil, err
	}
	last := []byte(existing.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	document, err := threeWay(scheme, manifest, last, wanted, current)
	if err != nil {
		return nil, fmt.Errorf("merging with the existing object: %w", err)
	}
	after := &unstructured.Unstructured{}
	return after, after.UnmarshalJSON(document)
}

func threeWay(scheme *runtime.Scheme, manifest *unstructured.Unstructured, last, wanted, current []byte) ([]byte, error) {
	kind := manifest.GroupVersionKind()
	typed, err := scheme.New(kind)
	if err != nil || !slices.Contains([]string{"", "apps", "storage.k8s.io"}, kind.Group) {
		// The API server does not merge lists of custom resources.
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(last, wanted, current)
		if err != nil {
			return nil, err
		}
		return jsonpatchv4.MergePatch(current, patch)
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
