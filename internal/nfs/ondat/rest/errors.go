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
	if advice := kinds[e.Code].advice; advice != "" {
		text += ": " + advice
	}
	return text
}

// kinds of answers: a word for metrics, and what to do.
var kinds = map[int]struct{ class, advice string }{
	http.StatusBadRequest:                 {"bad_request", "the API did not understand: check that it is version 2"},
	http.StatusUnauthorized:               {"unauthorized", "check user name and password in the Secret of Ondat's credentials"},
	http.StatusForbidden:                  {"forbidden", "give the user a policy that allows it, or make it an administrator"},
	http.StatusNotFound:                   {"not_found", "it was deleted, or the endpoint is not Ondat's API"},
	http.StatusConflict:                   {"conflict", "it is in use; Fairlead tries again"},
	http.StatusPreconditionFailed:         {"stale_version", "it was changed meanwhile; Fairlead reads it again"},
	http.StatusUnprocessableEntity:        {"invalid_state", "it is in a state that does not allow it; Fairlead tries again"},
	http.StatusLocked:                     {"locked", "it is locked; Fairlead tries again"},
	http.StatusUnavailableForLegalReasons: {"licence", "the licence does not allow it: renew the licence"},
	http.StatusInternalServerError:        {"server_error", "Fairlead tries again; if it stays, look at the health of Ondat's nodes"},
	http.StatusServiceUnavailable:         {"unavailable", "the store of the control plane is not available; Fairlead tries again"},
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
		if class := kinds[e.Code].class; class != "" {
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
