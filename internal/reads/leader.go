package reads

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LeaseName names the Lease of Fairlead's controller, in Fairlead's namespace.
const LeaseName = "fairlead-controller"

// leaseIsOld is several times the duration of the Lease. Clocks may differ by as much.
const leaseIsOld = time.Minute

// releaseIsOld is several times what a replica takes to become the leader after another has released the Lease.
const releaseIsOld = 10 * time.Second

// Lease says who leads Fairlead's controllers. The zero Lease: none does.
type Lease struct {
	Holder  string
	Renewed time.Time
}

// Leads reports whether the holder has renewed the Lease lately.
func (l Lease) Leads(now time.Time) bool {
	return l.Holder != "" && now.Sub(l.Renewed).Abs() <= leaseIsOld
}

// Idle reports whether nobody has led for a while. At a roll-out, a released Lease has no holder for some seconds. Without
// a Lease that is not known: leader election may be off.
func (l Lease) Idle(now time.Time) bool {
	grace := leaseIsOld
	if l.Holder == "" {
		grace = releaseIsOld
	}
	return !l.Renewed.IsZero() && now.Sub(l.Renewed).Abs() > grace
}

// Lease reads the Lease of Fairlead's controller.
func (r *Reader) Lease(ctx context.Context, namespace string) (Lease, error) {
	return ReadLease(ctx, r.objects, namespace)
}

// ReadLease reads the Lease of Fairlead's controller.
func ReadLease(ctx context.Context, objects client.Reader, namespace string) (Lease, error) {
	var o coordinationv1.Lease
	err := objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: LeaseName}, &o)
	if apierrors.IsNotFound(err) {
		return Lease{}, nil
	}
	if err != nil {
		return Lease{}, fmt.Errorf("reading the Lease of Fairlead's controller: %w", err)
	}
	l := Lease{Holder: ptr.Deref(o.Spec.HolderIdentity, "")}
	if o.Spec.RenewTime != nil {
		l.Renewed = o.Spec.RenewTime.Time
	}
	return l, nil
}
