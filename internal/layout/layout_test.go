// Package layout_test keeps the dependencies between packages pointing downward.
package layout_test

import (
	_ "embed"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const module = "github.com/fairlead-io/fairlead/"

// layers from the top down. A package imports packages of its own entry and of lower layers; the
// longest entry that begins its path counts.
var layers = [][]string{
	{"cmd", "manifests/generate"},
	{"cli", "controllers", "internal/csi/node", "internal/csi/registration"},
	{"webhook", "internal/settingsapi", "internal/cephclients"},
	{"webhook/admission", "webhook/registration", "controllers/kit", "internal/csi/server", "internal/csi/mounts", "internal/csi/conntrack", "internal/csi/identity"},
	{"internal/reads/nfsreads", "internal/reads/fencingreads"},
	{"internal/reads"},
	{"internal/reads/lists"},
	{"internal/reads/caches", "internal/httpserver", "certs"},
	{"internal/reads/csiaddons", "mutators", "validators"},
	{"internal/config", "internal/nfs/plan"},
	{"internal/fence/taint"},
	{"internal/nfs/definition", "internal/nfs/ondat", "internal/fence/profiles", "internal/fence/advice", "internal/settings/planner", "internal/settings/describe", "internal/datapath"},
	{"internal/longhorn/components", "internal/fence", "internal/settings/rollout", "internal/nfs/assign", "internal/nfs/health", "internal/nfs/publish", "internal/nfs/rpc", "internal/nfs/volume"},
	{"internal/settings/catalog", "internal/nfs/options", "internal/longhorn/builtin"},
	{"internal/longhorn", "internal/settings"},
	{"internal/rwx"},
	{"internal/multus", "internal/nfs"},
	{"api", "internal/csi", "manifests/monitoring"},
}

// pure packages take values and return a verdict: no client, no clock, no logger, no goroutine. The Makefile tests them
// without the race detector.
//
//go:embed pure.txt
var pureText string

// isPure reports whether a pattern of pure.txt names the package.
func isPure(path string) bool {
	return slices.ContainsFunc(strings.Fields(pureText), func(pattern string) bool {
		entry, below := strings.CutSuffix(strings.TrimPrefix(pattern, "./"), "/...")
		return path == entry || below && strings.HasPrefix(path, entry+"/")
	})
}

func TestImportsPointDownward(t *testing.T) {
	files := productFiles(t)
	must.True(t, len(files) >= 300, "only %d files were found", len(files))
	for path, file := range files {
		from := filepath.ToSlash(filepath.Dir(path))
		above, entry := layerOf(from)
		if above < 0 {
			continue // tests, benchmarks and tools
		}
		for _, i := range file.Imports {
			to, ours := strings.CutPrefix(importPath(i), module)
			if !ours {
				continue
			}
			below, other := layerOf(to)
			if below < 0 {
				t.Errorf("%s imports %s, which is in no layer", path, to)
			} else if below < above || below == above && other != entry {
				t.Errorf("%s imports %s, which is not in a lower layer", path, to)
			}
		}
	}
}

func TestPurePackagesHaveNoClientClockLoggerOrGoroutine(t *testing.T) {
	for _, pattern := range strings.Fields(pureText) {
		_, err := os.Stat(filepath.Join("..", "..", strings.TrimSuffix(pattern, "/...")))
		must.Check(t, err == nil, "pure.txt names %s, which is missing: %v", pattern, err)
	}
	for path, file := range productFiles(t) {
		if !isPure(filepath.ToSlash(filepath.Dir(path))) {
			continue
		}
		for _, i := range file.Imports {
			if to := importPath(i); slices.ContainsFunc([]string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "log", "os", "net/http", "k8s.io/klog", "k8s.io/utils/clock"},
				func(effect string) bool { return to == effect || strings.HasPrefix(to, effect+"/") }) {
				t.Errorf("%s imports %s", path, to)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", path)
			}
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker"}, s.Sel.Name) {
					t.Errorf("%s calls time.%s", path, s.Sel.Name)
				}
			}
			return true
		})
	}
}

func layerOf(path string) (layer int, entry string) {
	layer = -1
	for i, entries := range layers {
		for _, e := range entries {
			if (path == e || strings.HasPrefix(path, e+"/")) && len(e) > len(entry) {
				layer, entry = i, e
			}
		}
	}
	return layer, entry
}

func importPath(i *ast.ImportSpec) string {
	path, _ := strconv.Unquote(i.Path.Value) // the parser has read it
	return path
}

// productFiles are the Go files that are not tests, by path from the root of the module.
func productFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	root, files := filepath.Join("..", ".."), map[string]*ast.File{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); relative != "." && (strings.HasPrefix(name, ".") || name == "testdata" || relative == "bin" || relative == "e2e" || relative == "bench" || relative == filepath.Join("internal", "testkit")) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			if files[filepath.ToSlash(relative)], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution); err != nil {
				return err
			}
		}
		return nil
	})
	must.Do(t, err)
	return files
}
