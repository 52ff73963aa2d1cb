package settingsapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	jsonv2 "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
)

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
