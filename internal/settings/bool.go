package settings

import (
	"strconv"
	"strings"
)

const boolForm = `must be "true" or "false"`

// normalizeBool takes the spellings that Longhorn takes (strconv.ParseBool).
func normalizeBool(value string) (string, error) {
	on, err := boolValue(value)
	if err != nil {
		return "", err
	}
	return strconv.FormatBool(on), nil
}

func boolValue(value string) (bool, error) {
	on, err := strconv.ParseBool(strings.TrimSpace(value))
	if err != nil {
		return false, malformed{form: boolForm}
	}
	return on, nil
}
