package main

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fairlead-io/fairlead/internal/multus"
)

var (
	errUnequal    = errors.New("the two sides give different pods: there is nothing to compare")
	errNotPatched = errors.New("not patched as the case says")
)

// checkEqual verifies that both sides do the same work: both allow the pod, and the
// pod after the patch is the same. Only if patched is true, the pod has a patch.
func checkEqual(ours, theirs *call, patched bool) error {
	var pods [2]*corev1.Pod
	for i, c := range []*call{ours, theirs} {
		if err := c.do(); err != nil {
			return err
		}
		response, err := readAnswer(c.answer.body.Bytes())
		if err != nil {
			return err
		}
		if (len(response.Patch) > 0) != patched {
			return fmt.Errorf("%w: %s", errNotPatched, response.Patch)
		}
		if pods[i], err = apply(c.review, response.Patch); err != nil {
			return err
		}
	}
	if !equality.Semantic.DeepEqual(pods[0], pods[1]) {
		return errUnequal
	}
	if patched && pods[0].Annotations[multus.NetworksAnnotation] == "" {
		return fmt.Errorf("%w: no network was added", errNotPatched)
	}
	return nil
}

func readAnswer(body []byte) (*admissionv1.AdmissionResponse, error) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if review.Response == nil || !review.Response.Allowed {
		return nil, fmt.Errorf("%w: not allowed: %s", errNotAnswered, body)
	}
	return review.Response, nil
}

// apply applies the patch as the API server does.
func apply(body, patch []byte) (*corev1.Pod, error) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, fmt.Errorf("reading the review: %w", err)
	}
	object := review.Request.Object.Raw
	if len(patch) > 0 {
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, fmt.Errorf("reading the patch: %w", err)
		}
		if object, err = operations.Apply(object); err != nil {
			return nil, fmt.Errorf("applying the patch: %w", err)
		}
	}
	var pod corev1.Pod
	if err := json.Unmarshal(object, &pod); err != nil {
		return nil, fmt.Errorf("reading the patched pod: %w", err)
	}
	return &pod, nil
}
