package clitest

import (
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/fairlead-io/fairlead/cli"
)

// Hostile text changes colours, clears the screen, moves the cursor, and reverses text.
const Hostile = "a\x1b[2J\u009b31m\r\b\x7f\u202e\u2066b\n\n\tc"

// spoil puts hostile text into every string, and one element into every list.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(Hostile)
	case reflect.Pointer:
		if v.Type() != reflect.TypeFor[*time.Time]() {
			v.Set(reflect.New(v.Type().Elem()))
			spoil(v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		spoil(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				spoil(v.Field(i))
			}
		}
	default: // a time or a number has no text
	}
}

// Spoiled returns a value of type T full of hostile text.
func Spoiled[T any]() T {
	var value T
	spoil(reflect.ValueOf(&value).Elem())
	return value
}

// CheckPrinted fails a test for text that could control a terminal.
func CheckPrinted(t *testing.T, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%q", text[max(0, i-20):])
	}
}

// CheckSafe prints a value with hostile text as a table and as JSON: neither steers a terminal,
// no value breaks lines or columns, and the JSON keeps the value.
func CheckSafe(t *testing.T, value any, table func(io.Writer) error) {
	t.Helper()
	var shown, document strings.Builder
	if err := table(&shown); err != nil {
		t.Fatal(err)
	}
	CheckPrinted(t, shown.String())
	if strings.ContainsAny(shown.String(), "\t") || strings.Contains(shown.String(), "b\n") {
		t.Errorf("a value breaks lines or columns:\n%s", shown.String())
	}
	if err := cli.WriteJSON(&document, value); err != nil {
		t.Fatal(err)
	}
	CheckPrinted(t, document.String())
	again := reflect.New(reflect.TypeOf(value))
	if err := json.Unmarshal([]byte(document.String()), again.Interface()); err != nil || !reflect.DeepEqual(again.Elem().Interface(), value) {
		t.Errorf("the JSON has %+v, %v", again.Elem(), err)
	}
}
