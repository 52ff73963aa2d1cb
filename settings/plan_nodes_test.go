package settings

import (
	"slices"
	"strings"
	"testing"
)

// A pod is not restarted where it would not come back, whatever its setting's gate says.
func TestNoPodIsRestartedWhereItWouldNotComeBack(t *testing.T) {
	for name, test := range map[string]struct {
		but     func(*Node)
		waiting []string
		says    string
	}{
		"a node that is cordoned":                        {func(n *Node) { n.Cordoned = true }, []string{"im-1"}, "uncordon it"},
		"a node that is not Ready":                       {func(n *Node) { n.Ready = false }, []string{"bim", "im-1"}, "while the node is down"},
		"a node that is down to the storage system only": {func(n *Node) { n.StorageDown = true }, []string{"bim", "im-1"}, "while the node is down"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleet()
			f.set(PriorityClass, critical)
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
