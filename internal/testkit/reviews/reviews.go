// Package reviews makes admission reviews for tests, sends them to a handler, and reads the answers.
package reviews

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// Kinds of the objects in reviews.
const (
	Pod           = `{"group":"","version":"v1","kind":"Pod"}`
	Service       = `{"group":"","version":"v1","kind":"Service"}`
	DaemonSet     = `{"group":"apps","version":"v1","kind":"DaemonSet"}`
	Node          = `{"group":"","version":"v1","kind":"Node"}`
	Claim         = `{"group":"","version":"v1","kind":"PersistentVolumeClaim"}`
	Volume        = `{"group":"","version":"v1","kind":"PersistentVolume"}`
	Class         = `{"group":"storage.k8s.io","version":"v1","kind":"StorageClass"}`
	Attachment    = `{"group":"storage.k8s.io","version":"v1","kind":"VolumeAttachment"}`
	Network       = `{"group":"k8s.cni.cncf.io","version":"v1","kind":"NetworkAttachmentDefinition"}`
	ShareManager  = `{"group":"longhorn.io","version":"v1beta2","kind":"ShareManager"}`
	SystemSetting = `{"group":"longhorn.io","version":"v1beta2","kind":"Setting"}`
	Setting       = `{"group":"fairlead.io","version":"v1alpha1","kind":"Setting"}`
	NodeFence     = `{"group":"fairlead.io","version":"v1alpha1","kind":"NodeFence"}`
	NFSService    = `{"group":"fairlead.io","version":"v1alpha1","kind":"NFSService"}`
)

// UID of all reviews.
const UID = "the-uid"

// Of is a review of an object of a kind. Fields go into the request beside uid and kind.
func Of(kind, fields string) string {
	return fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":%q,"kind":%s,%s}}`, UID, kind, fields)
}

// Send posts a body as the API server does.
func Send(h http.Handler, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	h.ServeHTTP(response, request)
	return response
}

// Ask sends a review and fails the test without an answer.
func Ask(t testing.TB, h http.Handler, path, review string) admissionv1.AdmissionResponse {
	t.Helper()
	response := Send(h, path, review)
	if response.Code != http.StatusOK {
		t.Fatalf("status %d: %s", response.Code, response.Body)
	}
	return Answer(t, response.Body.String())
}

// Answer parses an answer strictly.
func Answer(t testing.TB, body string) admissionv1.AdmissionResponse {
	t.Helper()
	var review admissionv1.AdmissionReview
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&review); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Response == nil || review.Request != nil {
		t.Fatalf("not an answer: %s", body)
	}
	var patch []map[string]any
	switch kind := review.Response.PatchType; {
	case review.Response.Patch == nil && kind != nil:
		t.Fatalf("a patchType and no patch: %s", body)
	case review.Response.Patch == nil:
	case kind == nil || *kind != admissionv1.PatchTypeJSONPatch:
		t.Fatalf("a patch of type %v", kind)
	default:
		if err := json.Unmarshal(review.Response.Patch, &patch); err != nil || len(patch) == 0 {
			t.Fatalf("patch %s: %v", review.Response.Patch, err)
		}
	}
	return *review.Response
}
