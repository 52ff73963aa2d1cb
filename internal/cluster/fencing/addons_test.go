package fencing

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// Older versions of csi-addons have no NetworkFenceClasses: a node is then fenced by driver and Secret.
func TestCSIAddonsIsMissingOnlyWithoutNetworkFences(t *testing.T) {
	for name, test := range map[string]struct {
		absent  client.ObjectList
		missing bool
	}{
		"all installed":    {nil, false},
		"no classes":       {&csiaddons.NetworkFenceClassList{}, false},
		"no nodes":         {&csiaddons.CSIAddonsNodeList{}, false},
		"no NetworkFences": {&csiaddons.NetworkFenceList{}, true},
	} {
		w := fenceWorld{
			objects: append(used(rbd, "one"), nodeAt("node-1", "192.168.1.1"), objects.ClientPod("csi-rbdplugin", "node-1")),
			funcs: interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if fmt.Sprintf("%T", list) == fmt.Sprintf("%T", test.absent) {
					return &meta.NoKindMatchError{}
				}
				return c.List(ctx, list, opts...)
			}},
		}
		view := w.facts(t, "node-1")
		if view.Facts.NoCSIAddons != test.missing || len(view.Facts.Ledger) != 1 {
			t.Errorf("%s: missing %t, want %t; the ledger is %+v", name, view.Facts.NoCSIAddons, test.missing, view.Facts.Ledger)
		}
		if err := w.reader(t).addOthers(t.Context(), view); err != nil || view.Facts.NoCSIAddons != test.missing {
			t.Errorf("%s, with other nodes: missing %t, want %t (%v)", name, view.Facts.NoCSIAddons, test.missing, err)
		}
	}
}
