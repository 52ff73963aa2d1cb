package volumes

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Contests reports claims and PersistentVolumes that fix an address or a MAC of another volume.
// The webhook refuses them, except if two are created at the same moment, or while it is away.
// There is one request.
type Contests struct {
	Names  longhorn.Names
	Cached *reads.Reader
	Events events.EventRecorder
	Log    *slog.Logger

	// reported is by object.
	reported map[rwx.Asker]string
}

// Reconcile reports each contested object once.
func (r *Contests) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	requests, err := r.Cached.Requests(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	for asker, problem := range requests.Contested {
		if r.reported[asker] == problem {
			continue
		}
		r.Log.Warn("two volumes ask for the same address or MAC", "by", asker.String(), "detail", problem)
		r.Events.Eventf(asking(asker), nil, corev1.EventTypeWarning, "AddressTaken", "Look", "%s", problem)
	}
	r.reported = requests.Contested
	return ctrl.Result{}, nil
}

// asking is the object of an event.
func asking(a rwx.Asker) client.Object {
	at := metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name, UID: types.UID(a.UID)}
	if a.Kind == rwx.ClaimKind {
		return &corev1.PersistentVolumeClaim{ObjectMeta: at}
	}
	return &corev1.PersistentVolume{ObjectMeta: at}
}

// SetupWithManager registers the controller. Few of the claims and PersistentVolumes fix anything.
func (r *Contests) SetupWithManager(mgr ctrl.Manager) error {
	one := kit.Always(kit.Request(longhorn.Name)[0])
	here := kit.InNamespace(r.Names.Namespace)
	fixing := kit.AnnotationsChanged(fixes)
	err := ctrl.NewControllerManagedBy(mgr).Named("contests-"+longhorn.Name).
		WatchesMetadata(&corev1.PersistentVolumeClaim{}, one, builder.WithPredicates(fixing)).
		Watches(&corev1.PersistentVolume{}, one, builder.WithPredicates(fixing)).
		Watches(&corev1.Service{}, one, builder.WithPredicates(here, fixing)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the report of contested addresses: %w", err)
	}
	return nil
}

// fixes reports whether annotations fix addresses or a MAC.
func fixes(annotations map[string]string) bool {
	for _, key := range []string{rwx.VolumeAddressesAnnotation, rwx.VolumeMACAnnotation, rwx.AddressesAnnotation, rwx.MACAnnotation} {
		if annotations[key] != "" {
			return true
		}
	}
	return false
}
