package fencing

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
)

// requestReports has csi-addons report the clients of a node again if its reports may be of an earlier boot. Until csi-addons
// does, the node has no proved address.
func (r *Reconciler) requestReports(ctx context.Context, v *fencing.FenceView) {
	for _, n := range v.Unproved {
		err := r.requestReport(ctx, n, v.Facts.Node.Machine.BootID)
		if err != nil && !kit.IsStale(err) { // else an event follows
			r.Log.Error("could not request a new report of csi-addons", "node", v.Facts.Node.Name, "csiAddonsNode", n.Namespace+"/"+n.Name, "error", err)
		}
	}
}

func (r *Reconciler) requestReport(ctx context.Context, n *csiaddons.CSIAddonsNode, bootID string) error {
	patch, err := fencing.ForgetReport(n)
	if err != nil {
		return err
	}
	if err := r.Client.Status().Patch(ctx, n, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	if patch, err = fencing.MarkReport(n, bootID); err != nil {
		return err
	}
	return r.Client.Patch(ctx, n, client.RawPatch(types.MergePatchType, patch))
}
