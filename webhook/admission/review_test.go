package admission

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/mutators"
)

func TestMalformedReviewsAreRefused(t *testing.T) {
	good := podReview(`{"metadata":{}}`)
	replaced := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	const decoding, noRequest, noObject = "decoding the review: ", "the review has no request, or the request no uid", "the CREATE of a Pod has no object"
	for name, test := range map[string]struct {
		body    string
		status  int
		message string
	}{
		"empty":                   {"", 400, "the body is empty: expected an AdmissionReview"},
		"blank":                   {"  ", 400, decoding},
		"not JSON":                {"kind: AdmissionReview", 400, decoding},
		"cut off":                 {good[:len(good)-2], 400, decoding},
		"two reviews":             {good + good, 400, decoding},
		"duplicate name":          {replaced(`"uid":"the-uid"`, `"uid":"a","uid":"the-uid"`), 400, decoding},
		"not UTF-8":               {replaced("the-uid", "\xff"), 400, decoding},
		"list":                    {"[" + good + "]", 400, decoding},
		"null":                    {"null", 400, "got  : only AdmissionReview admission.k8s.io/v1 is served"},
		"v1beta1":                 {replaced("admission.k8s.io/v1", "admission.k8s.io/v1beta1"), 400, "got admission.k8s.io/v1beta1 AdmissionReview: only AdmissionReview admission.k8s.io/v1 is served"},
		"another kind":            {replaced("AdmissionReview", "Pod"), 400, "got admission.k8s.io/v1 Pod: only AdmissionReview admission.k8s.io/v1 is served"},
		"no request":              {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, 400, noRequest},
		"no uid":                  {replaced("the-uid", ""), 400, noRequest},
		"request in capitals":     {replaced(`"request"`, `"Request"`), 400, noRequest},
		"uid in capitals":         {replaced(`"uid"`, `"UID"`), 400, noRequest},
		"object's kind":           {replaced(`"kind":"Pod"`, `"kind":"Node"`), 400, "got a /v1, Kind=Node: this path serves [/v1, Kind=Pod]; is the webhook registered right?"},
		"object's version":        {replaced(`"version":"v1","kind":"Pod"`, `"version":"v2","kind":"Pod"`), 400, "got a /v2, Kind=Pod: this path serves [/v1, Kind=Pod]; is the webhook registered right?"},
		"no object":               {reviews.Of(reviews.Pod, `"operation":"CREATE"`), 400, noObject},
		"object null":             {podReview("null"), 400, noObject},
		"object in capitals":      {replaced(`"object"`, `"Object"`), 400, noObject},
		"object of another type":  {podReview("[]"), 400, decoding},
		"a field of another type": {podReview(`{"spec":{"hostNetwork":"yes"}}`), 400, decoding},
		"oversized":               {podReview(`{"metadata":{"name":"` + strings.Repeat("x", MaxBody) + `"}}`), 413, "the review is larger than 7340032 bytes"},
	} {
		if got := reviews.Send(podHandler(NewLimit(), pass), "/pods", test.body); got.Code != test.status || !strings.HasPrefix(got.Body.String(), test.message) {
			t.Errorf("%s: got %d %s, want %d %s", name, got.Code, got.Body, test.status, test.message)
		}
	}
}

func TestOnlyJSONIsRead(t *testing.T) {
	for _, contentType := range []string{"", "text/plain", "application/yaml", "application/vnd.kubernetes.protobuf"} {
		request := httptest.NewRequest(http.MethodPost, "/pods", strings.NewReader(podReview(`{"metadata":{}}`)))
		request.Header.Set("Content-Type", contentType)
		response := httptest.NewRecorder()
		podHandler(NewLimit(), pass).ServeHTTP(response, request)
		must.Equal(t, response.Code, http.StatusUnsupportedMediaType, "%q", contentType)
	}
}

func TestNamesAreCaseSensitive(t *testing.T) {
	handler := podHandler(NewLimit(), func(_ context.Context, r *Request[mutators.ClientPod]) Decision {
		must.Check(t, r.Object.Metadata.Annotations == nil && !r.Object.Spec.HostNetwork, "got %+v", r.Object)
		return Decision{}
	})
	reviews.Ask(t, handler, "/pods", podReview(`{"metadata":{"Annotations":{"fairlead.io/opt-out":"true"}},"Spec":{"hostNetwork":true},"spec":{"HostNetwork":true}}`))
}

func TestDeadlineReachesRule(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"?timeout=5s":    4500 * time.Millisecond,
		"?timeout=500ms": 450 * time.Millisecond,
		"?timeout=30s":   27 * time.Second,
		"":               9 * time.Second,
		"?timeout=":      9 * time.Second,
		"?timeout=soon":  9 * time.Second,
		"?timeout=0s":    9 * time.Second,
		"?timeout=-1s":   9 * time.Second,
		"?timeout=1h":    9 * time.Second,
	} {
		var left time.Duration
		handler := podHandler(NewLimit(), func(ctx context.Context, _ *Request[mutators.ClientPod]) Decision {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return Decision{}
		})
		reviews.Ask(t, handler, "/pods"+query, podReview("{}"))
		must.Check(t, left <= want && left >= want-2*time.Second && left > 0, "%s: got %s, want a little less than %s", query, left, want)
	}
}
