package conformance_test

import (
	"bytes"
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestAnswersAreAdmissionReviewV1(t *testing.T) {
	w := newReviewer(t)
	for n := range 3 {
		a, err := w.post(t.Context(), bytes.NewReader(w.body(func(r *admissionv1.AdmissionRequest) { r.UID = uid(n) })), nil)
		must.Do(t, err)
		response, err := a.response()
		must.Do(t, err)
		must.Equal(t, response.UID, uid(n))
		var about metav1.TypeMeta
		must.Do(t, json.Unmarshal(a.body, &about))
		must.Equal(t, about, metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionv1.SchemeGroupVersion.String()})
	}
}

// A newer API server sends more fields.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	w := newReviewer(t)
	body := bytes.Replace(w.body(nil), []byte(`"request":{`), []byte(`"request":{"fieldOfTheFuture":{"a":[1,null]},`), 1)
	a, err := w.post(t.Context(), bytes.NewReader(body), nil)
	must.Do(t, err)
	_, err = a.response()
	must.Do(t, err)
}

// Each operation matters, and a patched object is not patched again: reinvocation must settle.
func TestPatchesAreMinimalAndIdempotent(t *testing.T) {
	w := newReviewer(t)
	before := w.request.Object.Raw
	response, patch, after := w.patched(t, before, nil)
	must.Equal(t, *response.PatchType, admissionv1.PatchTypeJSONPatch)
	must.True(t, !jsonpatch.Equal(before, after), "the patch changes nothing")
	for i := range patch {
		others := append(append(jsonpatch.Patch{}, patch[:i]...), patch[i+1:]...)
		if without, err := others.Apply(before); err == nil && jsonpatch.Equal(without, after) {
			t.Errorf("operation %d changes nothing", i)
		}
	}
	again, _, _ := w.patched(t, after, nil)
	must.True(t, again.Patch == nil && again.PatchType == nil, "a patched object is patched once more")
}

// Retries must not change the outcome, and kubectl diff must show the truth.
func TestSameRequestGetsSameAnswer(t *testing.T) {
	w := newReviewer(t)
	_, _, first := w.patched(t, w.request.Object.Raw, ptr.To(false))
	for n := range 10 {
		_, _, next := w.patched(t, w.request.Object.Raw, ptr.To(n%2 == 0))
		must.True(t, jsonpatch.Equal(first, next), "the answers differ")
	}
}

// patched returns the answer for an object, and the object with its patch.
func (w reviewer) patched(t *testing.T, object []byte, dryRun *bool) (*admissionv1.AdmissionResponse, jsonpatch.Patch, []byte) {
	t.Helper()
	response, err := w.ask(t.Context(), func(r *admissionv1.AdmissionRequest) { r.Object.Raw, r.DryRun = object, dryRun })
	must.Do(t, err)
	if response.Patch == nil {
		return response, nil, object
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	must.Do(t, err)
	after, err := patch.Apply(object)
	must.Do(t, err)
	return response, patch, after
}
