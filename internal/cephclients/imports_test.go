package cephclients

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Fencing must work, and be understood, without this package.
func TestOnlyCmdImportsThePackage(t *testing.T) {
	root, seen := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			if !strings.Contains(i.Path.Value, "/internal/cephclients") {
				continue
			}
			seen++
			within, _ := filepath.Rel(root, file)
			if top, _, _ := strings.Cut(filepath.ToSlash(within), "/"); top != "cmd" && top != "internal" && top != "e2e" {
				t.Errorf("%s imports %s", within, i.Path.Value)
			}
		}
		return nil
	})
	if err != nil || seen < 2 {
		t.Errorf("%d imports seen, %v", seen, err)
	}
}
