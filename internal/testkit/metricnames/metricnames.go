// Package metricnames finds metrics in texts that the product does not serve: an alert on such a metric never fires.
package metricnames

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// name of a metric, of Fairlead or as Ondat's own manager has it. The series of a histogram have suffixes.
var name = regexp.MustCompile(`\b(fairlead|storageos)_[a-z_]*[a-z]\b`)

// Served are the names in string literals of the product's code.
type Served map[string]bool

// Read reads the code below the root of the module.
func Read(t must.TB, root string) Served {
	t.Helper()
	served := Served{}
	for _, folder := range []string{"cmd", "controllers", "internal", "webhook"} {
		must.Do(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					if literal := strings.Trim(text.Value, "\"`"); name.FindString(literal) == literal {
						served[literal] = true
					}
				}
				return true
			})
			return nil
		}))
	}
	must.True(t, len(served) > 30, "only %d metrics were found in the code", len(served))
	return served
}

// Check fails the test for each metric in the text that is not served, and returns how many metrics the text has.
func (s Served) Check(t must.TB, where, text string) int {
	t.Helper()
	found := name.FindAllString(text, -1)
	for _, metric := range found {
		histogram := strings.TrimSuffix(strings.TrimSuffix(metric, "_bucket"), "_count")
		if !s[metric] && !s[histogram] {
			t.Errorf("%s: no code serves %s", where, metric)
		}
	}
	return len(found)
}
