package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxBody is the largest review in bytes. The API server stores objects of up to 1.5 MiB (etcd's limit) and accepts
// requests of 3 MiB; a review of an update has two objects.
const MaxBody = 7 << 20

// Request is the part of an AdmissionRequest that rules read. V is the rule's view of the object: other fields are
// skipped.
type Request[V any] struct {
	UID         string                      `json:"uid"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Name        string                      `json:"name"`
	Namespace   string                      `json:"namespace"`
	Operation   admissionv1.Operation       `json:"operation"`
	UserInfo    authenticationv1.UserInfo   `json:"userInfo"`
	DryRun      bool                        `json:"dryRun"`
	Object      *V                          `json:"object"`
	// OldObject is set for updates and deletions.
	OldObject *V `json:"oldObject"`
}

type review[V any] struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Request    *Request[V] `json:"request"`
}

// badReview is an error with its HTTP status. For any status but 200, the API server applies the failure policy.
type badReview struct {
	status int
	err    error
}

func (e *badReview) Error() string { return e.err.Error() }

func bad(status int, format string, args ...any) error {
	return &badReview{status, fmt.Errorf(format, args...)}
}

// bodies are buffers for the next reviews: a review with a new buffer takes 30 % more CPU (make bench).
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// pooledBody is the largest body whose buffer is kept: most are smaller.
const pooledBody = 16 << 10

// readReview reads and checks a review. Names are case-sensitive, and duplicate names are refused.
func readReview[V any](w http.ResponseWriter, r *http.Request, held *reservation, kinds []metav1.GroupVersionKind, deletes bool) (*Request[V], error) {
	if contentType := r.Header.Get("Content-Type"); contentType != "application/json" {
		return nil, bad(http.StatusUnsupportedMediaType, "content type %q: must be application/json", contentType)
	}
	if r.ContentLength > MaxBody {
		return nil, bad(http.StatusRequestEntityTooLarge, "the review is larger than %d bytes", MaxBody)
	}
	size := int(bodySize(r)) + bytes.MinRead // with less room, ReadFrom doubles the buffer
	body := &bytes.Buffer{}
	if size <= pooledBody {
		body = bodies.Get().(*bytes.Buffer)
		defer bodies.Put(body)
		body.Reset()
	}
	body.Grow(size)
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody)); err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, bad(http.StatusRequestEntityTooLarge, "the review is larger than %d bytes", tooLarge.Limit)
		}
		return nil, bad(http.StatusBadRequest, "reading the review: %w", err)
	}
	if err := held.hold(decodingCost(body.Bytes())); err != nil {
		return nil, err
	}
	// Decoding copies strings, so the body can be reused.
	return decodeReview[V](body.Bytes(), kinds, deletes)
}

func decodeReview[V any](body []byte, kinds []metav1.GroupVersionKind, deletes bool) (*Request[V], error) {
	if len(body) == 0 {
		return nil, bad(http.StatusBadRequest, "the body is empty: expected an AdmissionReview")
	}
	var decoded review[V]
	if err := jsonv2.Unmarshal(body, &decoded); err != nil {
		return nil, bad(http.StatusBadRequest, "decoding the review: %w", err)
	}
	if decoded.Kind != "AdmissionReview" || decoded.APIVersion != admissionv1.SchemeGroupVersion.String() {
		return nil, bad(http.StatusBadRequest, "got %s %s: only AdmissionReview %s is served", decoded.APIVersion, decoded.Kind, admissionv1.SchemeGroupVersion)
	}
	request := decoded.Request
	if request == nil || request.UID == "" {
		return nil, bad(http.StatusBadRequest, "the review has no request, or the request no uid")
	}
	for _, kind := range kinds {
		if request.Kind == kind {
			judged := request.Object
			if deletes && request.Operation == admissionv1.Delete {
				judged = request.OldObject
			}
			if judged == nil {
				return nil, bad(http.StatusBadRequest, "the %s of a %s has no object", request.Operation, kind.Kind)
			}
			return request, nil
		}
	}
	return nil, bad(http.StatusBadRequest, "got a %s: this path serves %v; is the webhook registered right?", request.Kind, kinds)
}

func writeReview(w io.Writer, response admissionv1.AdmissionResponse) error {
	return json.NewEncoder(w).Encode(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: &response,
	})
}
