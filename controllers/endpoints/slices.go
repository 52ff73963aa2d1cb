package endpoints

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/controllers/addresses"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

var families = addresses.Families()

func (r *Reconciler) writer() addresses.Writer {
	return addresses.Writer{Client: r.Client, Live: r.Live}
}

// syncSlices writes one slice per IP family. A family without addresses gets no slice; an existing
// slice is emptied, as Kubernetes does. A refused slice stops no other family.
func (r *Reconciler) syncSlices(ctx context.Context, service *corev1.Service, published []rwx.Published) error {
	var problems []error
	users := sync.OnceValues(func() (map[string]rwx.Run, error) { return r.Cached.PodsUsing(ctx, r.Live, service.Name) })
	for _, family := range families {
		if err := r.syncSlice(ctx, service, slice(service, family, published), users); err != nil {
			problems = append(problems, fmt.Errorf("publishing %s of Service %s: %w", family, service.Name, err))
		}
	}
	return errors.Join(problems...)
}

// syncSlice reads the users of the volume if they have to be known before other addresses are published.
func (r *Reconciler) syncSlice(ctx context.Context, service *corev1.Service, want *discoveryv1.EndpointSlice, users podsUsing) error {
	have, err := r.ownSlice(ctx, want.Name)
	if err != nil || have == nil && len(want.Endpoints) == 0 {
		return err
	}
	if err := r.addMoves(have, want, users); err != nil {
		return err
	}
	if have != nil && addresses.SameSlice(have, want) {
		return nil
	}
	if _, err := r.writer().WriteSlice(ctx, have, want); err != nil {
		return err
	}
	r.Log.Info("published", "service", service.Name, "family", want.AddressType, "addresses", reads.PublishedIn(want))
	return nil
}

// podsUsing are those of one volume, as reads.Reader.PodsUsing.
type podsUsing func() (map[string]rwx.Run, error)

// addMoves adds who is left behind if the server has moved.
func (r *Reconciler) addMoves(have, want *discoveryv1.EndpointSlice, users podsUsing) error {
	if !r.DeadMounts {
		if have != nil && have.Annotations[rwx.MovesAnnotation] != "" {
			want.Annotations = map[string]string{rwx.MovesAnnotation: ""} // it would be wrong after the next move
		}
		return nil
	}
	var moves rwx.Moves
	var before []netip.Addr
	if have != nil {
		moves, before = reads.MovesOf(have), reads.PublishedIn(have)
	}
	published, pods := reads.PublishedIn(want), map[string]rwx.Run(nil)
	begins := len(moves.Addresses) == 0 && len(before) > 0
	if begins || moves.LeavesBehind(published) {
		var err error
		if pods, err = users(); apierrors.IsForbidden(err) {
			r.Log.Error("it is not known whose mounts die when the server moves", "slice", want.Name, "error", err)
		} else if err != nil {
			return err
		}
	}
	if begins {
		moves = rwx.Begin(before, pods)
	}
	want.Annotations = map[string]string{rwx.MovesAnnotation: moves.Next(published, pods).String()}
	return nil
}

// slice is what the Service's slice of one family should be.
func slice(service *corev1.Service, family discoveryv1.AddressType, published []rwx.Published) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: reads.SliceName(service.Name, family),
			OwnerReferences: addresses.Owner(service),
			Labels: map[string]string{
				discoveryv1.LabelServiceName: service.Name,
				discoveryv1.LabelManagedBy:   rwx.SliceManager,
				corev1.IsHeadlessService:     "",
			},
		},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{},
		Ports:       []discoveryv1.EndpointPort{},
	}
	for _, p := range published {
		if p.Address.Is4() != (family == discoveryv1.AddressTypeIPv4) {
			continue
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{p.Address.String()},
			// Only Ready and non-terminating pods are published.
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
			NodeName:   ptr.To(p.Node),
			TargetRef:  target(service.Namespace, p),
		})
	}
	for _, port := range service.Spec.Ports {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{
			Name: ptr.To(port.Name), Protocol: ptr.To(port.Protocol), Port: ptr.To(portNumber(port)), AppProtocol: port.AppProtocol,
		})
	}
	return s
}

// portNumber is the pod's port. Named ports are not in the cached part of a pod; NFS servers do not
// use them.
func portNumber(port corev1.ServicePort) int32 {
	if n := port.TargetPort.IntVal; n != 0 {
		return n
	}
	return port.Port
}

func target(namespace string, p rwx.Published) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: p.Pod, UID: types.UID(p.UID)}
}

// ownSlice returns a slice that this controller manages; others are not cached.
func (r *Reconciler) ownSlice(ctx context.Context, name string) (*discoveryv1.EndpointSlice, error) {
	return r.writer().Slice(ctx, r.Names.Namespace, name)
}
