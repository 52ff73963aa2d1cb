package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Each kind of blocker that the catalog declares has a command.
func TestEveryBlockerHasNextCommand(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/settings/catalog/gate.go", nil, 0)
	must.Do(t, err)
	kinds := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "BlockedBy") {
			return true
		}
		kinds++
		kind := strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)
		if next := Next(v1.Blocker{Kind: kind, Name: "a"}, "longhorn-system"); !strings.HasPrefix(next, "kubectl ") {
			t.Errorf("%s: %q", kind, next)
		}
		return true
	})
	must.Equal(t, kinds > 10, true)
	must.Equal(t, Next(v1.Blocker{Kind: "Volume", Name: "pvc-1", Workloads: []string{"default/web-0"}}, "longhorn-system"), "kubectl -n default describe pod web-0")
	owned := v1.Blocker{Kind: "Volume", Name: "pvc-1", Workloads: []string{"default/web-0"}, Owners: []string{"default/statefulset/web", "default/deployment/api"}}
	must.Equal(t, Next(owned, "longhorn-system"), "kubectl -n default scale --replicas=0 statefulset/web deployment/api")
	owned.Owners = []string{"default/statefulset/web", "default/pod/web-0"}
	must.Equal(t, Next(owned, "longhorn-system"), "kubectl -n default describe pod web-0", "the volume stays attached")
	owned.Owners = []string{"default/daemonset/web"}
	must.Equal(t, Next(owned, "longhorn-system"), "kubectl -n default describe pod web-0", "no replicas to scale")
	owned.Owners = []string{"default/statefulset/web;reboot"}
	must.Equal(t, Next(owned, "longhorn-system"), "-")
	must.Equal(t, Next(v1.Blocker{Kind: "Volume", Name: "pvc-1"}, "longhorn-system"), "kubectl -n longhorn-system describe volumes.longhorn.io pvc-1")
	must.Equal(t, Next(v1.Blocker{Kind: "Volume", Name: "pvc-1", Workloads: []string{"default/web;reboot"}}, "longhorn-system"), "-")
	must.Equal(t, Next(v1.Blocker{Kind: "Volume", Name: "pvc-1", Workloads: []string{"default/a --kubeconfig=x"}}, "longhorn-system"), "-")
	must.Equal(t, Next(v1.Blocker{Kind: "Node", Name: "node-1", Nodes: []string{"node-1"}}, "longhorn-system"), "kubectl describe node node-1")
	must.Equal(t, Next(v1.Blocker{Kind: "Time", Name: "networks.settle"}, "longhorn-system"), "-", "some seconds need no command")
}
