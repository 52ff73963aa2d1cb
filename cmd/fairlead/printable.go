package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// terminal is what all output goes through: what others wrote into objects, or an
// API server into an error, must not steer a terminal. Lines and tabs stay.
type terminal struct{ io.Writer }

func (t terminal) Write(text []byte) (int, error) {
	clean := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printableRune(r)
	}, string(text))
	if _, err := io.WriteString(t.Writer, clean); err != nil {
		return 0, err
	}
	return len(text), nil
}

// printable is text on one line.
func printable(text string) string { return strings.Map(printableRune, text) }

// writeLine writes one line, whatever the values are.
func writeLine(out io.Writer, format string, args ...any) {
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

// escaped is JSON in which control characters are escapes. JSON itself wants that of some only.
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
