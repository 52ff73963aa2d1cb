package catalog

import (
	"strconv"
	"strings"
)

const boolForm = `must be "true" or "false"`

// normalizeBool accepts what Longhorn accepts (strconv.ParseBool).
func normalizeBool(value string) (string, error) {
	on, err := BoolValue(value)
	if err != nil {
		return "", err
	}
	return strconv.FormatBool(on), nil
}

// IsOn reports whether a switch is on. A malformed value is off.
func IsOn(value string) bool {
	on, err := BoolValue(value)
	return err == nil && on
}

func BoolValue(value string) (bool, error) {
	on, err := strconv.ParseBool(strings.TrimSpace(value))
	if err != nil {
		return false, malformed{form: boolForm}
	}
	return on, nil
}
