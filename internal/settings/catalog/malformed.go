package catalog

import (
	"errors"
	"fmt"
)

// malformed is the reason to refuse a value: the required form, and a detail if the form is not clear enough.
// The error follows the value in messages: `must be a whole number from 0 to 40`.
type malformed struct{ form, detail string }

func (m malformed) Error() string {
	if m.detail == "" {
		return m.form
	}
	return m.form + ": " + m.detail
}

// refuse returns a malformed with a formatted detail.
func refuse(form, detail string, args ...any) error {
	return malformed{form, fmt.Sprintf(detail, args...)}
}

// detailOf returns the detail of a malformed, else the whole error.
func detailOf(err error) string {
	var m malformed
	if errors.As(err, &m) {
		return m.detail
	}
	return err.Error()
}

// nonsense is refused by every setting that refuses any value.
const nonsense = "\x00"

// Allowed is the required form of a value, in the words of a refusal.
func (d Definition) Allowed() string {
	err := d.Parse(nonsense)
	var m malformed
	switch {
	case err == nil:
		return "any text"
	case errors.As(err, &m):
		return m.form
	}
	return err.Error()
}
