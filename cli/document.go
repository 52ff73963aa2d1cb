package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/yaml"
)

// Formats of --output.
const (
	OutputTable = "table"
	OutputWide  = "wide"
	OutputJSON  = "json"
	OutputYAML  = "yaml"
)

// IsDocument reports whether a format is for programs.
func IsDocument(format string) bool { return format == OutputJSON || format == OutputYAML }

// WriteDocument writes a value as JSON or YAML.
func WriteDocument(out io.Writer, format string, value any) error {
	if format != OutputYAML {
		return WriteJSON(out, value)
	}
	text, err := yaml.Marshal(value)
	if err == nil {
		_, err = out.Write(text)
	}
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// WriteJSON writes a document without raw control characters.
func WriteJSON(out io.Writer, value any) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if _, err := out.Write(escaped(document.Bytes())); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// escaped escapes all control characters of JSON, which itself requires escapes of some only.
func escaped(document []byte) []byte {
	const hex = "0123456789abcdef"
	var out bytes.Buffer
	for _, r := range string(document) {
		if r == '\n' || unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				out.WriteByte(hex[unit>>shift&0xf])
			}
		}
	}
	return out.Bytes()
}
