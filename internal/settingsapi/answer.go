package settingsapi

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
