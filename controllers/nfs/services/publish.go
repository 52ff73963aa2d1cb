package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// defaultParallel is how many Services of a service are written at once.
const defaultParallel = 8

// fault is a Service that cannot be published.
type fault struct {
	name    string
	state   frontend.State
	message string
}

// notWritten is the state of a Service that the API server refused, or that it did not answer for.
const notWritten frontend.State = "ServiceNotWritten"

// publish records moves, then writes Services and slices. New ClusterIPs are written
// into next. A Service that can't be written is a fault, and tried again after the report.
func (p *pass) publish(ctx context.Context, next *v1alpha1.NFSServiceStatus) error {
	if moved(&p.service.Status, next) {
		if err := p.write(ctx, p.outline(next)); err != nil {
			return err
		}
	}
	fronts := p.frontends(next)
	if err := p.confirm(ctx, fronts); err != nil {
		return err
	}
	results, failed := p.sync(ctx, fronts)
	for i, result := range results {
		if failed[i] == nil || result.ClusterIP.IsValid() {
			recordAddress(next, fronts[i].Slot, result)
		}
		switch err := failed[i]; {
		case err != nil:
			p.failed = append(p.failed, err)
			if !kit.IsConflict(err) {
				p.faults = append(p.faults, fault{fronts[i].Name, notWritten, err.Error()})
			}
		case result.State != frontend.Published:
			p.faults = append(p.faults, fault{fronts[i].Name, result.State, result.Message})
		}
	}
	return nil
}

// outline is the earlier status with the new targets of its addresses.
func (p *pass) outline(next *v1alpha1.NFSServiceStatus) *v1alpha1.NFSServiceStatus {
	outline := p.service.Status.DeepCopy()
	outline.Address, outline.Backend = next.Address, next.Backend
	outline.Slots = append([]v1alpha1.NFSSlotStatus{}, next.Slots...)
	return outline
}

// frontends are the Services of a status.
func (p *pass) frontends(status *v1alpha1.NFSServiceStatus) []publish.Frontend {
	var fronts []publish.Frontend
	for i, name := range publish.Names(p.service.Name, p.spec.Exposure, len(status.Slots)) {
		f := publish.Frontend{
			Namespace: p.service.Namespace, Name: name, Service: p.service.Name, Owner: owner(p.service), Port: int32(p.spec.Port), Slot: -1,
			MountPort: p.spec.PublishedMountPort(),
		}
		address, backend := status.Address, status.Backend
		if len(status.Slots) > 0 {
			f.Slot, address, backend = i, status.Slots[i].Address, status.Slots[i].Backend
		}
		f.ClusterIP, _ = netip.ParseAddr(address)
		f.Backend = addrPort(backend)
		if f.ClusterIP.IsValid() || f.Backend.IsValid() { // else its family is not known yet
			fronts = append(fronts, f)
		}
	}
	return fronts
}

// owner lets the garbage collector delete the Services with the NFSService.
func owner(service *v1alpha1.NFSService) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "NFSService", Name: service.Name, UID: service.UID, Controller: ptr.To(true),
	}
}

// sync writes frontends in parallel. A failure of one does not stop the others.
func (p *pass) sync(ctx context.Context, fronts []publish.Frontend) ([]frontend.Result, []error) {
	results := make([]frontend.Result, len(fronts))
	failed := make([]error, len(fronts))
	var group errgroup.Group
	group.SetLimit(cmp.Or(p.parallel, defaultParallel))
	for i, f := range fronts {
		group.Go(func() error {
			results[i], failed[i] = p.Writer.Sync(ctx, f, p.dead)
			return nil
		})
	}
	_ = group.Wait()
	return results, failed
}

// confirm reads live before a Service is created without an address: a stale cache
// may lack the address that is recorded.
func (p *pass) confirm(ctx context.Context, fronts []publish.Frontend) error {
	for _, f := range fronts {
		if f.ClusterIP.IsValid() {
			continue
		}
		var live v1alpha1.NFSService
		if err := p.Live.Get(ctx, client.ObjectKeyFromObject(p.service), &live); err != nil {
			return fmt.Errorf("reading NFSService %s: %w", p.key, err)
		}
		if live.UID != p.service.UID || live.ResourceVersion != p.service.ResourceVersion {
			return apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "nfsservices"}, p.key.Name, errBehind)
		}
		return nil
	}
	return nil
}

var errBehind = errors.New("the cache is behind")

// recordAddress records the ClusterIP of a Service, or the fault of the recorded one.
func recordAddress(status *v1alpha1.NFSServiceStatus, slot int, result frontend.Result) {
	address, unpublished := &status.Address, &status.Unpublished
	if slot >= 0 {
		address, unpublished = &status.Slots[slot].Address, &status.Slots[slot].Unpublished
	}
	if !result.ClusterIP.IsValid() {
		*unpublished = string(result.State)
		return
	}
	*address, *unpublished = result.ClusterIP.String(), ""
}
