package main

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf16"
)

// printable replaces control characters: what others wrote into objects must not steer a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return '?'
	}, text)
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
