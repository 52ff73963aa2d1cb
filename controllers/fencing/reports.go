package fencing

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// requestReports has csi-addons report the clients of a node again if its reports may be of an earlier boot. Until csi-addons
// does, the node has no proved address.
func (r *Reconciler) requestReports(ctx context.Context, v *fencingreads.FenceView) {
	for _, n := range v.Unproved {
		patch, err := fencingreads.ForgetReport(n)
		if err == nil {
			err = r.Client.Status().Patch(ctx, n, client.RawPatch(types.MergePatchType, patch))
		}
		if err == nil {
			patch, err = fencingreads.MarkReport(n, v.Facts.Node.Boot.BootID)
		}
		if err == nil {
			err = r.Client.Patch(ctx, n, client.RawPatch(types.MergePatchType, patch))
		}
		if err != nil && !kit.IsStale(err) { // else an event follows
			r.Log.Error("could not request a new report of csi-addons", "node", v.Facts.Node.Name, "csiAddonsNode", n.Namespace+"/"+n.Name, "error", err)
		}
	}
}
