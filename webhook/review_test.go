package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReviewsThatAreRefused(t *testing.T) {
	good := podReview(`{"metadata":{}}`)
	for name, test := range map[string]struct {
		body    string
		status  int
		message string
	}{
		"empty":                     {"", 400, "the body is empty: expected an AdmissionReview"},
		"blank":                     {"  ", 400, "decoding the review: "},
		"not JSON":                  {"kind: AdmissionReview", 400, "decoding the review: "},
		"cut off":                   {good[:len(good)-2], 400, "decoding the review: "},
		"two reviews":               {good + good, 400, "decoding the review: "},
		"a name twice":              {strings.Replace(good, `"uid":"the-uid"`, `"uid":"a","uid":"the-uid"`, 1), 400, "decoding the review: "},
		"not UTF-8":                 {strings.Replace(good, "the-uid", "\xff", 1), 400, "decoding the review: "},
		"a list":                    {"[" + good + "]", 400, "decoding the review: "},
		"null":                      {"null", 400, "got  : only AdmissionReview admission.k8s.io/v1 is served"},
		"v1beta1":                   {strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), 400, "got admission.k8s.io/v1beta1 AdmissionReview: only AdmissionReview admission.k8s.io/v1 is served"},
		"another kind":              {strings.Replace(good, "AdmissionReview", "Pod", 1), 400, "got admission.k8s.io/v1 Pod: only AdmissionReview admission.k8s.io/v1 is served"},
		"no request":                {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, 400, "the review has no request, or the request no uid"},
		"request null":              {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}`, 400, "the review has no request, or the request no uid"},
		"no uid":                    {strings.Replace(good, "the-uid", "", 1), 400, "the review has no request, or the request no uid"},
		"request in capitals":       {strings.Replace(good, `"request"`, `"Request"`, 1), 400, "the review has no request, or the request no uid"},
		"uid in capitals":           {strings.Replace(good, `"uid"`, `"UID"`, 1), 400, "the review has no request, or the request no uid"},
		"a kind of another path":    {strings.Replace(good, `"kind":"Pod"`, `"kind":"Node"`, 1), 400, "got a /v1, Kind=Node: this path serves [/v1, Kind=Pod]; is the webhook registered right?"},
		"a version of another path": {strings.Replace(good, `"version":"v1","kind":"Pod"`, `"version":"v2","kind":"Pod"`, 1), 400, "got a /v2, Kind=Pod: this path serves [/v1, Kind=Pod]; is the webhook registered right?"},
		"no object":                 {reviewOf(podKind, `"operation":"CREATE"`), 400, "the CREATE of a Pod has no object"},
		"object null":               {podReview("null"), 400, "the CREATE of a Pod has no object"},
		"object in capitals":        {strings.Replace(good, `"object"`, `"Object"`, 1), 400, "the CREATE of a Pod has no object"},
		"object of another type":    {podReview("[]"), 400, "decoding the review: "},
		"a field of another type":   {podReview(`{"spec":{"hostNetwork":"yes"}}`), 400, "decoding the review: "},
		"oversized":                 {podReview(`{"metadata":{"name":"` + strings.Repeat("x", MaxBody) + `"}}`), 413, "the review is larger than 7340032 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newRig(t, fakeClient(t))
			status, message := h.post(clientPodsPath, test.body)
			if status != test.status || !strings.HasPrefix(message, test.message) || h.panics.Load() > 0 {
				t.Fatalf("got %d %s (%d panics), want %d %s", status, message, h.panics.Load(), test.status, test.message)
			}
		})
	}
}

func TestOnlyJSONIsRead(t *testing.T) {
	h := newRig(t, fakeClient(t))
	for _, contentType := range []string{"", "text/plain", "application/yaml", "application/vnd.kubernetes.protobuf"} {
		request := httptest.NewRequest(http.MethodPost, clientPodsPath, strings.NewReader(podReview(`{"metadata":{}}`)))
		request.Header.Set("Content-Type", contentType)
		response := httptest.NewRecorder()
		h.ServeHTTP(response, request)
		if response.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%q: got %d %s", contentType, response.Code, response.Body)
		}
	}
}

func TestNamesAreMatchedToTheLetter(t *testing.T) {
	response := newRig(t, fakeClient(t)).ask(t, clientPodsPath,
		podReview(`{"metadata":{"Annotations":{"fairlead.io/opt-out":"true"},"annotations":{"Fairlead.io/Opt-Out":"true"}},"Spec":{"hostNetwork":true},"spec":{"HostNetwork":true}}`))
	if response.Patch == nil {
		t.Fatalf("took a name in other letters for its own: %+v", response)
	}
}

// A rule that shapes objects has none to shape in a DELETE. It is never
// registered for one; should it be sent one all the same, it must not panic.
func TestADeletionIsNoPanic(t *testing.T) {
	for path, kind := range map[string]string{
		"/mutate/longhorn/client-pods": podKind, "/mutate/longhorn/server-pods": podKind, "/mutate/longhorn/services": serviceKind,
		"/mutate/longhorn/client-template": daemonSetKind, "/mutate/longhorn/sharemanagers": shareKind,
		settingStatusPath: settingKind, "/validate/longhorn/settings": settingKind, "/validate/networks": networkKind,
	} {
		t.Run(path, func(t *testing.T) {
			h := newRig(t, fakeClient(t))
			status, message := h.post(path, reviewOf(kind, `"operation":"DELETE","name":"x","namespace":"longhorn-system"`))
			if h.panics.Load() > 0 {
				t.Fatalf("panic: %d %s", status, message)
			}
		})
	}
}

func TestOtherMethodsAndPathsAreNotServed(t *testing.T) {
	h := newRig(t, fakeClient(t))
	if status, _ := h.post("/mutate/rook-ceph/client-pods", podReview("{}")); status != http.StatusNotFound {
		t.Errorf("unknown profile: got %d", status)
	}
	response := httptest.NewRecorder()
	h.ServeHTTP(response, httptest.NewRequest(http.MethodGet, clientPodsPath, nil))
	if response.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: got %d", response.Code)
	}
}
