//lint:file-ignore SA1019 this file is for the readers of the deprecated API

package endpoints

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/addresses"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// After maxOverwritten writes of other addresses by another controller, with at most overwrittenGap
// between them, the classic object is left to that controller. The slices stay correct.
const (
	maxOverwritten = 3
	overwrittenGap = 10 * time.Minute
)

// overwritten keeps the writes of one Service's classic object.
type overwritten struct {
	service types.UID
	// read and wrote are the versions before and after the last write: any other version
	// was written by another controller.
	read, wrote string
	// counted is the other controller's version that was counted last.
	counted string
	subsets []corev1.EndpointSubset
	times   int
	last    time.Time
}

// syncClassic writes the Endpoints object. Longhorn creates one for each share manager, and fills
// those that a ShareManager owns. If the Service owns the object, only Fairlead writes it;
// Releaser restores the owner.
func (r *Reconciler) syncClassic(ctx context.Context, service *corev1.Service, published []rwx.Published) error {
	want := classic(service, published)
	have, err := r.classic(ctx, service.Name)
	if err != nil {
		return err
	}
	read := ""
	if have != nil {
		if isSame(have, want) || r.standsDown(service, have, want) {
			return nil
		}
		read = have.ResourceVersion
	} else if len(want.Subsets) == 0 {
		return nil
	}
	written, err := r.write(ctx, have, want)
	if err != nil {
		return err
	}
	r.wroteClassic(service, read, written)
	return nil
}

func (r *Reconciler) wroteClassic(service *corev1.Service, read string, written *corev1.Endpoints) {
	o := r.overwritten[service.Name]
	if o == nil || o.service != service.UID {
		o = &overwritten{service: service.UID}
		r.overwritten[service.Name] = o
	}
	o.read, o.wrote, o.subsets = read, written.ResourceVersion, written.Subsets
}

// standsDown counts writes of other addresses by another controller. It reports whether Fairlead leaves the object to that
// controller.
func (r *Reconciler) standsDown(service *corev1.Service, have, want *corev1.Endpoints) bool {
	o := r.overwritten[service.Name]
	if o == nil || o.service != service.UID {
		return false
	}
	if o.times >= maxOverwritten {
		return true
	}
	others := have.ResourceVersion != o.read && have.ResourceVersion != o.wrote && have.ResourceVersion != o.counted
	if !others || !equality.Semantic.DeepEqual(o.subsets, want.Subsets) || equality.Semantic.DeepEqual(have.Subsets, want.Subsets) {
		return false
	}
	now := r.Clock.Now()
	if now.Sub(o.last) > overwrittenGap {
		o.times = 0
	}
	o.last, o.counted = now, have.ResourceVersion
	if o.times++; o.times < maxOverwritten {
		return false
	}
	r.Log.Warn("standing down", "endpoints", service.Name, "why", "another controller writes other addresses")
	r.Events.Eventf(service, nil, corev1.EventTypeWarning, "StandingDown", "Publish",
		"another controller keeps writing other addresses to Endpoints %s: Fairlead leaves the object alone. The EndpointSlices are correct; set \"endpoints: slices\" in the configuration if no client reads the classic object", service.Name)
	return true
}

// classic is what the Endpoints object should be. Source: proposal "Storage
// Network For RWX Volume", Kubernetes Endpoint Controller.
func classic(service *corev1.Service, published []rwx.Published) *corev1.Endpoints {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Namespace: service.Namespace, Name: service.Name, OwnerReferences: addresses.Owner(service),
		Labels: map[string]string{
			// Mirrored slices would publish the addresses twice.
			discoveryv1.LabelSkipMirror: "true",
			corev1.IsHeadlessService:    "",
			rwx.EndpointsManagedBy:      rwx.SliceManager,
		},
	}}
	subset := corev1.EndpointSubset{}
	for _, p := range published {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{
			IP: p.Address.String(), NodeName: ptr.To(p.Node), TargetRef: target(service.Namespace, p),
		})
	}
	for _, port := range service.Spec.Ports {
		subset.Ports = append(subset.Ports, corev1.EndpointPort{
			Name: port.Name, Protocol: port.Protocol, Port: portNumber(port), AppProtocol: port.AppProtocol,
		})
	}
	if len(subset.Addresses) > 0 {
		e.Subsets = []corev1.EndpointSubset{subset}
	}
	return e
}

// leaveClassic leaves the Endpoints object to Longhorn, and keeps Kubernetes
// from mirroring it: Longhorn falls back to the pod's own address.
func (r *Reconciler) leaveClassic(ctx context.Context, name string) error {
	have, err := r.classic(ctx, name)
	if err != nil || have == nil || !managed(have) && (touched(have) || !ofShareManager(have)) {
		return err
	}
	_, err = r.releaser().classic(ctx, name, false)
	return err
}

// classic reads the Endpoints object of a Service, or nil.
func (r *Reconciler) classic(ctx context.Context, name string) (*corev1.Endpoints, error) {
	var e corev1.Endpoints
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Names.Namespace, Name: name}, &e); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Endpoints %s: %w", name, err)
	}
	return &e, nil
}

// isSame reports whether an Endpoints object is as wanted.
func isSame(have, want *corev1.Endpoints) bool {
	return maps.Equal(have.Labels, addresses.Labelled(have.Labels, want.Labels)) &&
		equality.Semantic.DeepEqual(have.Subsets, want.Subsets) &&
		equality.Semantic.DeepEqual(have.OwnerReferences, want.OwnerReferences)
}

// write creates an Endpoints object, or updates the object that was read. It takes over an
// object that is not cached, and returns the object as written.
func (r *Reconciler) write(ctx context.Context, have, want *corev1.Endpoints) (*corev1.Endpoints, error) {
	if have == nil {
		err := r.Client.Create(ctx, want)
		if err == nil {
			return want, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("writing Endpoints %s: %w", want.Name, err)
		}
		have = &corev1.Endpoints{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
			return nil, fmt.Errorf("reading Endpoints %s: %w", want.Name, err)
		}
	}
	updated := have.DeepCopy()
	updated.Labels = addresses.Labelled(have.Labels, want.Labels)
	updated.OwnerReferences, updated.Subsets = want.OwnerReferences, want.Subsets
	err := r.Client.Update(ctx, updated)
	if apierrors.IsNotFound(err) { // deleted by the garbage collector; the cache is stale
		updated = want.DeepCopy()
		updated.ResourceVersion, updated.UID = "", ""
		err = r.Client.Create(ctx, updated)
	}
	if err != nil {
		return nil, fmt.Errorf("writing Endpoints %s: %w", want.Name, err)
	}
	return updated, nil
}
