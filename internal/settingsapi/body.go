package settingsapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	jsonv2 "github.com/go-json-experiment/json"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
)

// answer writes JSON. Caches must not keep it: the content is for one caller, and soon stale.
func answer(w http.ResponseWriter, code int, body any) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // the answer is not HTML, and people read it
	_ = encoder.Encode(body)     // the caller may have gone
}

// refuse answers with a Status, as the API server does for every error. So refusals
// of the API server and of Fairlead have the same form.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
	if len(causes) > 0 {
		status.Details = &metav1.StatusDetails{Causes: causes}
	}
	answer(w, code, status)
}

// refuseAs passes on an error answer of the API server unchanged, except that the caller is unknown. Any other
// error is an internal error, whose text goes only to the log.
func refuseAs(w http.ResponseWriter, err error) {
	if apierrors.IsUnauthorized(err) {
		refuseToken(w, `Bearer realm="fairlead", error="invalid_token"`, "the API server does not know this token, or it has expired: "+howToAuthenticate)
		return
	}
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Code < 400 {
		refuse(w, http.StatusBadGateway, metav1.StatusReasonInternalError, "the API server could not be asked; see Fairlead's log")
		return
	}
	status := refusal.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	answer(w, int(status.Code), status)
}

// maxBody is enough for the longest value of a setting with every character escaped.
const maxBody = 32 << 10

var errNoValue = errors.New(`want {"value": "..."}`)

// decodeChange reads exactly {"value": "..."}. A misspelt, repeated or missing field
// could cause an unintended change.
func decodeChange(body io.Reader) (string, error) {
	var change v1.SettingChange
	if err := jsonv2.UnmarshalRead(body, &change, jsonv2.RejectUnknownMembers(true)); err != nil {
		return "", fmt.Errorf("reading the body: %w", err)
	}
	if change.Value == nil {
		return "", errNoValue
	}
	return *change.Value, nil
}

// readChange reads the change in a request. If the body is not valid, it answers the request.
func readChange(w http.ResponseWriter, r *http.Request) (value string, ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "send the body as Content-Type: application/json")
		return "", false
	}
	value, err := decodeChange(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody))
	case err != nil:
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	return value, err == nil
}
