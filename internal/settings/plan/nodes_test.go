package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// A pod is not restarted where it would not come back, whatever its setting's gate says.
func TestNoPodIsRestartedWhereItWouldNotComeBack(t *testing.T) {
	for name, test := range map[string]struct {
		but     func(*catalog.Node)
		waiting []string
		says    string
	}{
		"a node that is cordoned":                        {func(n *catalog.Node) { n.Cordoned = true }, []string{"im-1"}, "uncordon it"},
		"a node that is not Ready":                       {func(n *catalog.Node) { n.Ready = false }, []string{"bim", "im-1"}, "while the node is down"},
		"a node that is down to the storage system only": {func(n *catalog.Node) { n.StorageDown = true }, []string{"bim", "im-1"}, "while the node is down"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleet()
			f.set(catalog.PriorityClass, critical)
			node := f.Nodes["node-1"]
			test.but(&node)
			f.Nodes["node-1"] = node
			p := Make(f)
			for _, w := range p.Now {
				if slices.Contains(test.waiting, w.Component.Name) {
					t.Errorf("%s is restarted", w.Component.Name)
				}
			}
			var waiting []string
			for _, w := range p.Later {
				waiting = append(waiting, w.Component.Name)
				if !strings.Contains(w.Blockers[0].Message, test.says) {
					t.Errorf("%s: %s", w.Component.Name, w.Blockers[0].Message)
				}
			}
			if !slices.Equal(waiting, test.waiting) {
				t.Errorf("%v wait, want %v", waiting, test.waiting)
			}
		})
	}
}

// An instance manager asks for the number of cores that it is created again with.
func TestInstanceManagerNeedsItsCores(t *testing.T) {
	for name, test := range map[string]struct{ built, cores, share, says string }{
		"as many as the node has":                     {"0", "4", "", ""},
		"more than the node has":                      {"0", "5", "", "it asks for 5000m of CPU and the node has 4000m"},
		"more, with a share beside":                   {"0", "5", "12", "it asks for 5000m of CPU and the node has 4000m"},
		"fewer than those that the node did not have": {"8", "2", "12", ""},
		"of a pod that is missing":                    {"", "5", "12", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleet()
			f.addV2()
			f.changeNode("node-1", func(n *catalog.Node) { n.AllocatableMilliCPU = 4000 })
			for i := range f.Components {
				if c := &f.Components[i]; c.Engine == catalog.EngineV2 {
					c.Built = with(c.Built, catalog.CPUCores, test.built)
					if test.built == "" {
						c.Built, c.Missing, c.Ready = nil, true, false
					}
				}
			}
			f.set(catalog.DataEngineCPUCores, test.cores)
			if test.share != "" {
				f.set(catalog.GuaranteedCPU, test.share)
			}
			p := Make(f)
			var says []string
			for _, w := range p.Later {
				if w.Component.Name == "v2-im-1" {
					says = append(says, w.Blockers[0].Message)
				}
			}
			if got := strings.Join(says, "; "); (test.says == "") != (got == "") || !strings.Contains(got, test.says) {
				t.Errorf("waits for %q", got)
			}
		})
	}
}
