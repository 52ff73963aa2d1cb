package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"unicode"
)

// Error is an answer of the control plane that is no success.
type Error struct {
	// Doing says what was asked for, such as "listing namespaces".
	Doing string
	// Code is the HTTP status.
	Code int
	// Message is the control plane's own, made printable and cut; empty if the body
	// was not JSON.
	Message string
}

// Error says what was refused, why, and what to do.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s at Ondat's API: status %d", e.Doing, e.Code)
	if e.Message != "" {
		text += fmt.Sprintf(" (%s)", e.Message)
	}
	if advice := advices[e.Code]; advice != "" {
		text += ": " + advice
	}
	return text
}

var advices = map[int]string{
	http.StatusBadRequest:                 "the API did not understand: check that it is version 2",
	http.StatusUnauthorized:               "check user name and password in the Secret of Ondat's credentials",
	http.StatusForbidden:                  "give the user a policy that allows it, or make it an administrator",
	http.StatusNotFound:                   "it was deleted, or the endpoint is not Ondat's API",
	http.StatusConflict:                   "it is in use; Fairlead tries again",
	http.StatusPreconditionFailed:         "it was changed meanwhile; Fairlead reads it again",
	http.StatusUnprocessableEntity:        "it is in a state that does not allow it; Fairlead tries again",
	http.StatusLocked:                     "it is locked; Fairlead tries again",
	http.StatusUnavailableForLegalReasons: "the licence does not allow it: renew the licence",
	http.StatusInternalServerError:        "Fairlead tries again; if it stays, look at the health of Ondat's nodes",
	http.StatusServiceUnavailable:         "the store of the control plane is not available; Fairlead tries again",
}

// IsCode reports whether the control plane answered with this status.
func IsCode(err error, code int) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// Class of an error, for metrics: one of few words. No error is the empty one.
func Class(err error) string {
	var e *Error
	var timeout net.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		if class := classes[e.Code]; class != "" {
			return class
		}
		if e.Code >= 500 {
			return "server_error"
		}
		return "unexpected_status"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, errAnswer):
		return "bad_answer"
	}
	return "connection"
}

var classes = map[int]string{
	http.StatusBadRequest: "bad_request", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "not_found", http.StatusConflict: "conflict", http.StatusPreconditionFailed: "stale_version",
	http.StatusUnprocessableEntity: "invalid_state", http.StatusLocked: "locked", http.StatusUnavailableForLegalReasons: "licence",
	http.StatusServiceUnavailable: "unavailable",
}

// errAnswer is an answer that is not what the API promises.
var errAnswer = errors.New("is not Ondat's API, or another version of it")

// refused reads the body of an answer that is no success. It need not be JSON.
func refused(doing string, code int, body []byte, secrets ...string) *Error {
	var r refusal
	if json.Unmarshal(body, &r) != nil {
		r.Error = ""
	}
	for _, secret := range secrets {
		if secret != "" {
			r.Error = strings.ReplaceAll(r.Error, secret, "[hidden]")
		}
	}
	return &Error{Doing: doing, Code: code, Message: printable(r.Error)}
}

// printable cuts a text from outside to one short line.
func printable(text string) string {
	const most = 200
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
