package clitest

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// Golden compares with a file of testdata; UPDATE=1 writes the file.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

// Output returns the output of a command, which must return the wanted error; nil is no error.
func Output(t *testing.T, want error, command func(io.Writer) error) string {
	t.Helper()
	var out strings.Builder
	if err := command(&out); !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v; output:\n%s", err, want, out.String())
	}
	return out.String()
}
