package ondat

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
)

// maxRetry is the longest pause before a volume that fails is tried again.
const maxRetry = time.Minute

// Setup registers the controller as the configuration says. The manager's cache must
// have been given to Caches, and hold the objects with label fairlead.io/nfs-service.
// It asks the control plane nothing: that may be down.
func Setup(mgr ctrl.Manager, c config.Ondat, log *slog.Logger) error {
	api, err := rest.New(rest.Options{
		Endpoint: c.APIEndpoint, CAFile: c.CAFile, SecretPath: c.APISecretPath,
		Timeout: c.APITimeout.Duration, Refresh: c.APIRefreshInterval.Duration,
		Registry: crmetrics.Registry,
	})
	if err != nil {
		return fmt.Errorf("building the client of Ondat's API: %w", err)
	}
	r := &Reconciler{
		Config: c, API: api, Client: mgr.GetClient(), Live: mgr.GetAPIReader(),
		Writer: &frontend.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Log: log},
		Events: mgr.GetEventRecorder("fairlead"), Clock: clock.RealClock{}, Log: log,
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
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return object, nil
	}
	slim := &corev1.PersistentVolumeClaim{
		TypeMeta: claim.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion, DeletionTimestamp: claim.DeletionTimestamp,
		},
	}
	if address := claim.Annotations[ReplaceAnnotation]; address != "" {
		slim.Annotations = map[string]string{ReplaceAnnotation: address}
	}
	slim.Spec.VolumeName, slim.Status.Phase = claim.Spec.VolumeName, claim.Status.Phase
	return slim, nil
}

// prepare makes what the controller remembers.
func (r *Reconciler) prepare(registry prometheus.Registerer) error {
	r.table = newTable(r.Config.CacheExpiryInterval.Duration)
	var err error
	r.metrics, err = newMetrics(r.table, registry)
	return err
}

// SetupWithManager registers the controller with its poll, which only the leader runs.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.prepare(crmetrics.Registry); err != nil {
		return fmt.Errorf("registering the metrics of Ondat's volumes: %w", err)
	}
	byVolume := handler.EnqueueRequestsFromMapFunc(volumeOf)
	err := ctrl.NewControllerManagedBy(mgr).
		Named("ondat").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.Config.Concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](r.Config.K8sCreatePollInterval.Duration, maxRetry),
		}).
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			go r.run(ctx, queue)
			return nil
		})).
		Watches(&corev1.Service{}, byVolume).
		Watches(&discoveryv1.EndpointSlice{}, byVolume).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.volumesOfClaim)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("building the controller of Ondat's volumes: %w", err)
	}
	return nil
}

// volumeOf maps an object to the volume that its label names.
func volumeOf(_ context.Context, o client.Object) []reconcile.Request {
	return kit.Request(o.GetLabels()[ondat.VolumeIDLabel])
}

func (r *Reconciler) volumesOfClaim(_ context.Context, o client.Object) []reconcile.Request {
	return kit.Request(r.table.ofClaim(client.ObjectKeyFromObject(o))...)
}
