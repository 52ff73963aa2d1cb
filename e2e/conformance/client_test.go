package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// reviewer sends reviews to Fairlead's webhook as the API server does.
type reviewer struct {
	url string
	// client trusts the webhook's certificate. Its timeout limits each call.
	client *http.Client
	// request that is allowed and patched.
	request *admissionv1.AdmissionRequest
}

// body is an AdmissionReview of the request, changed if change is not nil.
func (w reviewer) body(change func(*admissionv1.AdmissionRequest)) []byte {
	request := w.request.DeepCopy()
	if change != nil {
		change(request)
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Request: request,
	}
	data, err := json.Marshal(review)
	if err != nil {
		panic(fmt.Sprintf("an AdmissionReview can't be written: %v", err)) // its objects were read from JSON
	}
	return data
}

// answer is an HTTP response, read to its end.
type answer struct {
	status int
	body   []byte
}

// post sends a body as the API server does.
func (w reviewer) post(ctx context.Context, body io.Reader, header map[string]string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, body)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, */*")
	for key, value := range header {
		request.Header.Set(key, value)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	return answer{response.StatusCode, text}, err
}

var errResponse = errors.New("the answer has no response")

// response of an answer, as the API server reads it.
func (a answer) response() (*admissionv1.AdmissionResponse, error) {
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d: %.200s", a.status, a.body)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(a.body, &review); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if review.Response == nil {
		return nil, errResponse
	}
	return review.Response, nil
}

// ask sends the request and reads the response.
func (w reviewer) ask(ctx context.Context, change func(*admissionv1.AdmissionRequest)) (*admissionv1.AdmissionResponse, error) {
	a, err := w.post(ctx, bytes.NewReader(w.body(change)), nil)
	if err != nil {
		return nil, err
	}
	return a.response()
}

func uid(n int) types.UID { return types.UID(fmt.Sprintf("conformance-%d", n)) }
