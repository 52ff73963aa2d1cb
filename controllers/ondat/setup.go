package ondat

import (
	"fmt"
	"log/slog"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
)

// Setup registers the controller as the configuration says. The manager's cache must
// have been given to Caches, and hold the objects with label fairlead.io/nfs-service.
// It asks the control plane nothing: that may be down.
func Setup(mgr ctrl.Manager, c config.Ondat, log *slog.Logger) error {
	api, err := rest.New(c.APIEndpoint, c.CAFile, c.APISecretPath, crmetrics.Registry)
	if err != nil {
		return fmt.Errorf("building the client of Ondat's API: %w", err)
	}
	r := &Reconciler{
		Config: c, API: api, Client: mgr.GetClient(), Live: mgr.GetAPIReader(),
		Writer: &frontend.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Log: log},
		Events: mgr.GetEventRecorder("fairlead"), Clock: clock.RealClock{}, Log: log, metrics: newMetrics(crmetrics.Registry),
	}
	return r.SetupWithManager(mgr)
}

// Caches adds the PVCs, of which few fields are kept. Services and slices are in the
// cache of NFS services, by label fairlead.io/nfs-service.
func Caches(options *cache.Options) {
	if options.ByObject == nil {
		options.ByObject = map[client.Object]cache.ByObject{}
	}
	options.ByObject[&corev1.PersistentVolumeClaim{}] = cache.ByObject{Transform: slimClaim}
}

// slimClaim keeps what is read. The copy is never written back.
func slimClaim(object any) (any, error) {
	if c, ok := object.(*corev1.PersistentVolumeClaim); ok {
		c.ManagedFields, c.Labels = nil, nil
		maps.DeleteFunc(c.Annotations, func(key, _ string) bool { return key != ReplaceAnnotation })
		c.Spec = corev1.PersistentVolumeClaimSpec{VolumeName: c.Spec.VolumeName}
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: c.Status.Phase}
	}
	return object, nil
}

// SetupWithManager registers the controller, which only the leader runs.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	round := reconcile.Request{NamespacedName: types.NamespacedName{Name: "round"}}
	ofVolumes := builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[ondat.VolumeIDLabel] != "" }))
	err := ctrl.NewControllerManagedBy(mgr).
		Named("ondat").
		WatchesRawSource(kit.AtStart(round)).
		Watches(&corev1.Service{}, kit.Always(round), ofVolumes).
		Watches(&discoveryv1.EndpointSlice{}, kit.Always(round), ofVolumes).
		Watches(&corev1.PersistentVolumeClaim{}, handler.Funcs{}). // fills the cache; changes wait for the next round
		Complete(r)
	if err != nil {
		return fmt.Errorf("building the controller of Ondat's volumes: %w", err)
	}
	return nil
}
