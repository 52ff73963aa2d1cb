package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// statusError is an answer of the control plane that is no success.
type statusError struct {
	code int
	// message is the control plane's own; empty if the body was not JSON.
	message string
}

// Error says what was refused, why, and what to do.
func (e *statusError) Error() string {
	text := fmt.Sprintf("status %d", e.code)
	if e.message != "" {
		text += fmt.Sprintf(" (%s)", e.message)
	}
	return text + ": " + advice(e.code)
}

func isStatus(err error, code int) bool {
	var e *statusError
	return errors.As(err, &e) && e.code == code
}

// refused reads the body of an answer that is no success: go-api's Error.
func refused(code int, body []byte, secret string) error {
	var answer struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(body, &answer)
	return &statusError{code, ondat.Printable(strings.ReplaceAll(answer.Error, secret, "[hidden]"))}
}

func advice(code int) string {
	switch code {
	case http.StatusUnauthorized:
		return "check user name and password in the Secret of Ondat's credentials"
	case http.StatusForbidden:
		return "give the user a policy that allows it, or make it an administrator"
	case http.StatusNotFound:
		return "it was deleted, or the endpoint is not Ondat's API"
	case http.StatusPreconditionFailed:
		return "another client changed it meanwhile: Fairlead reads it and tries again"
	case http.StatusUnavailableForLegalReasons:
		return "the licence does not allow it: renew the licence"
	}
	return "Fairlead tries again; if it stays, look at the health of Ondat's nodes"
}

// class of an error, for metrics: the status of the answer, or one of two words. No error is the empty one.
func class(err error) string {
	var e *statusError
	var timeout net.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return strconv.Itoa(e.code)
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	return "other"
}
