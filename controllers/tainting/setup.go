package tainting

import (
	"fmt"
	"maps"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// SetupWithManager registers the controller, unless automatic tainting is off. The
// manager's cache must hold nodes with their taints, labels and Ready condition, its
// time included, and NodeFences.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.Tainting.Check(); err != nil {
		return fmt.Errorf("setting up automatic tainting: %w", err)
	}
	if r.Tainting.Defaulted().Mode == taint.Off {
		return nil
	}
	if err := r.prepare(controllermetrics.Registry); err != nil {
		return fmt.Errorf("setting up automatic tainting: %w", err)
	}
	all := r.window.Handler(kit.Request("nodes")[0])
	err := ctrl.NewControllerManagedBy(mgr).Named("tainting").
		// Two workers would each find room for one more taint.
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(true), MaxConcurrentReconciles: 1}).
		Watches(&corev1.Node{}, all, builder.WithPredicates(kit.Updated(nodeChanged))).
		Watches(&v1alpha1.NodeFence{}, all, builder.WithPredicates(kit.Updated(recordChanged))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up automatic tainting: %w", err)
	}
	return nil
}

// prepare initializes what is kept between looks.
func (r *Reconciler) prepare(registry prometheus.Registerer) error {
	var err error
	r.given = map[string]string{}
	r.metrics, err = newMetrics(registry)
	return err
}

// nodeChanged reports whether a field of the node that the first check reads has changed. A kubelet
// writes its node's status every few minutes, mostly with other changes.
func nodeChanged(before, after *corev1.Node) bool {
	was, now := candidate(fencingreads.FenceNode(before), before), candidate(fencingreads.FenceNode(after), after)
	return was.Node.Ready != now.Node.Ready || was.Node.Unknown != now.Node.Unknown || was.Node.OutOfService != now.Node.OutOfService || was.Node.OwnTaint != now.Node.OwnTaint ||
		was.Cordoned != now.Cordoned || was.OptedOut != now.OptedOut || !maps.Equal(was.Labels, now.Labels)
}

// recordChanged reports whether a record changed in its incident's progress, or in what its node holds.
func recordChanged(before, after *v1alpha1.NodeFence) bool {
	was, is := before.Spec, after.Spec
	return before.Status.Phase != after.Status.Phase || !was.LostSince.Equal(is.LostSince) || !was.Tainted.Equal(is.Tainted) || !equality.Semantic.DeepEqual(was.Volumes, is.Volumes)
}
