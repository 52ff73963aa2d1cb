package catalog

import (
	"errors"
	"fmt"
)

// malformed is why a value is refused: the form that it must have, and what is
// wrong with this one where that is not plain from the form. It follows the
// value in a message: `must be a whole number from 0 to 40`.
type malformed struct{ form, detail string }

func (m malformed) Error() string {
	if m.detail == "" {
		return m.form
	}
	return m.form + ": " + m.detail
}

// refuse returns a malformed of this form.
func refuse(form, detail string, args ...any) error {
	return malformed{form, fmt.Sprintf(detail, args...)}
}

// detailOf is what is wrong beside the form.
func detailOf(err error) string {
	var m malformed
	if errors.As(err, &m) {
		return m.detail
	}
	return err.Error()
}

// nonsense is refused by every setting that refuses anything.
const nonsense = "\x00"

// Allowed is the form that a value must have, in the words of a refusal.
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
