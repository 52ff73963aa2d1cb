// Package volumes keeps the objects of each shared volume consistent with the volume's Service,
// also objects that were written while the webhooks were away. It corrects the endpoint, and
// restarts a server pod that clients can't reach once no started workload uses the volume.
// It also reports contested addresses.
package volumes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"

	"github.com/fairlead-io/fairlead/mutators"
)

// Reconciler keeps volumes consistent. A request names a volume.
type Reconciler struct {
	Names         longhorn.Names
	ClusterDomain string
	Client        client.Client
	Live          *reads.Reader
	// API reads objects from the API server.
	API    client.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Log    *slog.Logger

	// repairs are by volume, reports by volume and reason. There is one worker.
	repairs map[string]repair
	reports kit.Once[[2]string, string]
}

// Reconcile corrects the endpoint of one volume and repairs its server.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var sm longhorn.ShareManager
	if err := r.Client.Get(ctx, request.NamespacedName, &sm); err != nil {
		if apierrors.IsNotFound(err) {
			delete(r.repairs, request.Name)
			r.reports.ForgetAll(func(key [2]string) bool { return key[0] == request.Name })
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	service, err := r.Live.Service(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if service == nil {
		after, err := r.repairMissingService(ctx, &sm)
		return ctrl.Result{RequeueAfter: after}, err
	}
	refused := r.correctEndpoint(ctx, &sm, service)
	if kit.IsRefused(refused) { // the repair goes on
		r.report(&sm, "Refused", refused.Error())
	} else if refused != nil {
		return ctrl.Result{}, client.IgnoreNotFound(refused)
	}
	after, err := r.repairServer(ctx, &sm, service)
	return ctrl.Result{RequeueAfter: after}, errors.Join(refused, err)
}

// correctEndpoint applies the webhook's rule to an endpoint that was written without the webhook.
func (r *Reconciler) correctEndpoint(ctx context.Context, sm *longhorn.ShareManager, service *rwx.Service) error {
	var view mutators.ShareManager
	view.Metadata.Name, view.Status.Endpoint = sm.Name, sm.Status.Endpoint
	result := mutators.MutateShareManager(view, sm.Namespace, service, r.ClusterDomain)
	if result.Outcome != mutators.Mutated {
		return nil
	}
	// Longhorn may have changed the endpoint since it was read.
	unchanged := jsonpatch.NewOperation("test", "/status/endpoint", sm.Status.Endpoint)
	patch, err := json.Marshal(append([]jsonpatch.Operation{unchanged}, result.Patch...))
	if err != nil {
		return fmt.Errorf("correcting the endpoint of %s: %w", sm.Name, err)
	}
	if err := r.Client.Status().Patch(ctx, sm.DeepCopy(), client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("correcting the endpoint of %s: %w", sm.Name, err)
	}
	r.Log.Info("corrected an endpoint", "volume", sm.Name, "detail", result.Detail)
	return nil
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.repairs = map[string]repair{}
	here := kit.InNamespace(r.Names.Namespace)
	byLabel := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return kit.RequestIn(o.GetNamespace(), o.GetLabels()[r.Names.VolumeLabel])
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("volumes-"+longhorn.Name).
		For(&longhorn.ShareManager{}, builder.WithPredicates(here)).
		Watches(&corev1.Service{}, byLabel, builder.WithPredicates(here)).
		Watches(&corev1.Pod{}, byLabel, builder.WithPredicates(here)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the volumes controller: %w", err)
	}
	return nil
}
