package attach

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
)

// Annotator keeps the node annotation <driver>/assigned-ip as the GKE driver does:
// the address while the node has a volume attached, none after. It is for readers
// of the annotation; assignments are derived from VolumeAttachments.
//
// Unlike the GKE driver (lbcontroller.go: RemoveIPFromNode), it writes just the
// annotation, and removes it with the last volume of the node.
type Annotator struct {
	Client      client.Client
	Pools       *pools.Pools
	Drivers     nfsreads.Drivers
	Annotations map[string]config.NodeAnnotations
	Observer    *pools.Observer
	Log         *slog.Logger
}

// Reconcile brings the annotations of one node in line.
func (a *Annotator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var node corev1.Node
	if err := a.Client.Get(ctx, request.NamespacedName, &node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	changes := map[string]any{}
	for name, service := range a.Drivers {
		if a.Annotations[name] != config.NodeAnnotationsWrite {
			continue
		}
		key := csi.AddressKey(name)
		have, annotated := node.Annotations[key]
		var at assign.Placement
		attached := false
		a.Pools.View(service, func(p *assign.Pool) { at, attached = p.Node(node.Name) })
		switch {
		case attached && have != at.Address:
			changes[key] = at.Address
		case !attached && annotated:
			changes[key] = nil
		}
	}
	if len(changes) == 0 {
		return ctrl.Result{}, nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": node.UID, "annotations": changes}})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("annotating node %s: %w", node.Name, err)
	}
	if err := a.Client.Patch(ctx, &node, client.RawPatch(types.MergePatchType, data)); kit.IsStale(err) {
		return ctrl.Result{}, nil // the node was recreated, which is an event
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("annotating node %s: %w", node.Name, err)
	}
	a.Log.Info("annotated", "node", node.Name, "annotations", changes)
	return ctrl.Result{}, nil
}
