package wire

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWireImportsNoNetworkNoClock(t *testing.T) {
	allowed := []string{"bytes", "encoding/binary", "errors", "fmt", "io", "strconv", "strings"}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			if name := strings.Trim(i.Path.Value, `"`); !slices.Contains(allowed, name) {
				t.Errorf("%s imports %s", file, name)
			}
		}
	}
}
