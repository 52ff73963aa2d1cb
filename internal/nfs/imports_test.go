package nfs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The domain imports no client, clock, logger or I/O.
func TestDomainIsPure(t *testing.T) {
	allowed := []string{
		"cmp", "encoding/binary", "errors", "fmt", "iter", "maps", "math", "math/bits", "net/netip", "path", "slices", "strconv", "strings", "time", "unicode", "unicode/utf8",
		"github.com/cespare/xxhash/v2", "k8s.io/api/core/v1", "k8s.io/api/discovery/v1", "k8s.io/utils/ptr",
		"k8s.io/apimachinery/pkg/api/equality", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/util/intstr",
		"k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/util/validation",
		"github.com/fairlead-io/fairlead/internal/nfs",
	}
	// Further imports of single packages.
	besides := map[string][]string{
		"spec": {
			"github.com/fairlead-io/fairlead/api/v1alpha1", "github.com/fairlead-io/fairlead/internal/nfs/assign",
			"github.com/fairlead-io/fairlead/internal/nfs/health", "github.com/fairlead-io/fairlead/internal/nfs/options",
			"github.com/fairlead-io/fairlead/internal/nfs/publish",
		},
		"plan": {
			"github.com/fairlead-io/fairlead/api/v1alpha1", "github.com/fairlead-io/fairlead/internal/nfs/assign",
			"github.com/fairlead-io/fairlead/internal/nfs/publish", "github.com/fairlead-io/fairlead/internal/nfs/spec",
		},
		"volume":   {"github.com/fairlead-io/fairlead/internal/nfs/options"},
		"rpc/wire": {"bytes", "io"},
	}
	seen := 0
	for _, folder := range []string{".", "assign", "health", "ondat", "options", "publish", "plan", "spec", "volume", "rpc/wire"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		must.Do(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			must.Do(t, err)
			seen++
			for _, i := range parsed.Imports {
				if path := strings.Trim(i.Path.Value, `"`); !slices.Contains(allowed, path) && !slices.Contains(besides[folder], path) {
					t.Errorf("%s imports %s", file, path)
				}
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "Tick"}, call.Sel.Name) {
					if of, ok := call.X.(*ast.Ident); ok && (of.Name == "time" || of.Name == "metav1") {
						t.Errorf("%s reads a clock: %s.%s", file, of.Name, call.Sel.Name)
					}
				}
				return true
			})
		}
	}
	if seen < 20 {
		t.Errorf("%d files seen", seen)
	}
}
