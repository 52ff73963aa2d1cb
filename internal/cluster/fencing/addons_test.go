package fencing

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
)

// Whether there is anybody to ask is a matter of NetworkFences: without classes, as
// older versions of csi-addons are, a node is fenced by driver and secret.
func TestWhoIsToFenceIsAMatterOfNetworkFences(t *testing.T) {
	for name, test := range map[string]struct {
		absent client.ObjectList
		nobody bool
	}{
		"all is there":     {nil, false},
		"no classes":       {&csiaddons.NetworkFenceClassList{}, false},
		"no nodes":         {&csiaddons.CSIAddonsNodeList{}, false},
		"no NetworkFences": {&csiaddons.NetworkFenceList{}, true},
	} {
		w := fenceWorld{
			objects: append(used(rbdDriver, "one"), fencedNodeObject("node-1", "192.168.1.1"), fencedClient("csi-rbdplugin", "node-1")),
			funcs: interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if fmt.Sprintf("%T", list) == fmt.Sprintf("%T", test.absent) {
					return &meta.NoKindMatchError{}
				}
				return c.List(ctx, list, opts...)
			}},
		}
		view := w.facts(t, "node-1")
		if view.Facts.NoCSIAddons != test.nobody || len(view.Facts.Ledger) != 1 {
			t.Errorf("%s: nobody is there to ask: %t, want %t; the ledger is %+v", name, view.Facts.NoCSIAddons, test.nobody, view.Facts.Ledger)
		}
		if err := w.reader(t).addOthers(t.Context(), view); err != nil || view.Facts.NoCSIAddons != test.nobody {
			t.Errorf("%s, with the others: nobody is there to ask: %t, want %t (%v)", name, view.Facts.NoCSIAddons, test.nobody, err)
		}
	}
}
