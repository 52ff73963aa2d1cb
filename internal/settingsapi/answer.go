package settingsapi

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answer writes JSON. Nothing of it may be kept on the way: it is for this caller, and of now.
func answer(w http.ResponseWriter, code int, body any) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // it is no HTML, and people read it
	_ = encoder.Encode(body)     // the caller may have gone
}

// refuse answers with a Status, the form of every error of the API server, so
// that its own refusals and Fairlead's read alike.
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

// refuseAs passes on what the API server answered, word for word. Whatever else
// went wrong is an internal error, whose text stays in the log.
func refuseAs(w http.ResponseWriter, err error) {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Code < 400 {
		refuse(w, http.StatusBadGateway, metav1.StatusReasonInternalError, "the API server could not be asked; see Fairlead's log")
		return
	}
	status := refusal.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	answer(w, int(status.Code), status)
}
