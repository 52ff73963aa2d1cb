package catalog

import (
	"errors"
	"fmt"
)

// malformed is the error of Definition.Normalize: the form of the setting, and a detail if the form is not clear enough.
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
