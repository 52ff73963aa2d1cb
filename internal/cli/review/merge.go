package review

import (
	"fmt"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
)

// merged is what `kubectl apply` makes of a manifest and the existing object: the three-way merge with the
// configuration that was applied last. Lists are replaced: no rule reads a list that Kubernetes merges by its keys.
func merged(manifest, existing *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wanted, err := manifest.MarshalJSON()
	if err != nil {
		return nil, err
	}
	current, err := existing.MarshalJSON()
	if err != nil {
		return nil, err
	}
	last := []byte(existing.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(last, wanted, current)
	if err != nil {
		return nil, fmt.Errorf("merging with the existing object: %w", err)
	}
	document, err := jsonpatchv4.MergePatch(current, patch)
	if err != nil {
		return nil, fmt.Errorf("merging with the existing object: %w", err)
	}
	after := &unstructured.Unstructured{}
	return after, after.UnmarshalJSON(document)
}
