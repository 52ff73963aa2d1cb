package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Terminal replaces control characters, because text from objects and API servers must not steer a terminal.
// Newlines and tabs stay. Commands print without a look at errors: Err has the first one.
type Terminal struct {
	io.Writer
	err error
}

// Err is the first error of writing.
func (t *Terminal) Err() error { return t.err }

func (t *Terminal) Write(text []byte) (int, error) {
	clean := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printableRune(r)
	}, string(text))
	if _, err := io.WriteString(t.Writer, clean); err != nil {
		t.err = cmp.Or(t.err, fmt.Errorf("writing: %w", err))
		return 0, err
	}
	return len(text), nil
}

// printable returns text on one line, without control characters.
func printable(text string) string { return strings.Map(printableRune, text) }

// WriteLine writes exactly one line, also for values with newlines.
func WriteLine(out io.Writer, format string, args ...any) {
	fmt.Fprintln(out, printable(fmt.Sprintf(format, args...)))
}

func printableRune(r rune) rune {
	switch {
	case unicode.IsPrint(r):
		return r
	case unicode.IsSpace(r):
		return ' '
	}
	return '?'
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
