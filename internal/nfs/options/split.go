package options

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// split cuts an element at its commas, but not within double quotes, as mount(8)
// does for SELinux contexts.
func split(element string) ([]string, error) {
	var texts []string
	quoted, begin := false, 0
	for i, c := range element {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			texts = append(texts, element[begin:i])
			begin = i + 1
		}
	}
	if quoted {
		return nil, fmt.Errorf("%q has a quote that does not end: close it", element)
	}
	return append(texts, element[begin:]), nil
}

func wellFormed(text, name string) error {
	switch {
	case text == "":
		return fmt.Errorf("the option is empty: remove it, and a comma before or after it")
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%q has control characters or is not UTF-8: remove them", text)
	case strings.TrimSpace(text) != text:
		return fmt.Errorf("%q begins or ends with a blank: remove it", text)
	case name == "" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, " \"'\\/"):
		return fmt.Errorf("%q has no name of an option: write name or name=value", text)
	}
	return nil
}
