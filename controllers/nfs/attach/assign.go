package attach

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
)

// missingError says what an attachment waits for: an object that does not exist and may be created, or a living server.
type missingError struct{ error }

func (m missingError) Unwrap() error { return m.error }

func missing(format string, args ...any) error { return missingError{fmt.Errorf(format, args...)} }

// node reads a node, with its preferred server.
func (r *Reconciler) node(ctx context.Context, driver, name string) (assign.Node, error) {
	var node corev1.Node
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &node)
	if apierrors.IsNotFound(err) { // a new object may not be cached yet
		err = r.Live.Get(ctx, client.ObjectKey{Name: name}, &node)
	}
	if apierrors.IsNotFound(err) {
		return assign.Node{}, missing("node %s does not exist", name)
	} else if err != nil {
		return assign.Node{}, fmt.Errorf("reading node %s: %w", name, err)
	}
	n := assign.Node{Name: name, Zone: node.Labels[corev1.LabelTopologyZone]}
	if mode := r.Annotations[driver]; mode == config.NodeAnnotationsRead || mode == config.NodeAnnotationsWrite {
		n.Prefers = preferred(node.Annotations[csi.AddressKey(driver)])
	}
	return n, nil
}

// preferred is an annotation in the form that attachments carry; empty if it is no address.
func preferred(annotation string) string {
	endpoint, err := nfs.ParseEndpoint(annotation, nfs.DefaultPort)
	if err != nil {
		return ""
	}
	return nfs.Backend{Addr: endpoint}.Address()
}

// service reads an NFSService, and refuses one that is being deleted.
func (r *Reconciler) service(ctx context.Context, key types.NamespacedName) (*v1alpha1.NFSService, error) {
	var service v1alpha1.NFSService
	if err := r.Client.Get(ctx, key, &service); apierrors.IsNotFound(err) {
		return nil, missing("NFSService %s does not exist: create it, or correct the name in the PersistentVolume", key)
	} else if err != nil {
		return nil, fmt.Errorf("reading NFSService %s: %w", key, err)
	}
	if service.DeletionTimestamp != nil {
		return nil, missing("NFSService %s is being deleted, and takes no new nodes", key)
	}
	return &service, nil
}

// assign returns the address for a node and an attachment, and records it in the pools.
func (r *Reconciler) assign(ctx context.Context, key types.NamespacedName, node assign.Node, attachment pools.Key) (string, error) {
	service, err := r.service(ctx, key)
	if err != nil {
		return "", err
	}
	address, err := r.Pools.Attach(key, node, attachment)
	if errors.Is(err, assign.ErrNoBackend) || errors.Is(err, pools.ErrUnknownService) {
		r.Pools.SetService(service) // news of the service may not have come to the pools yet
		address, err = r.Pools.Attach(key, node, attachment)
	}
	if err != nil {
		return "", missing("NFSService %s has no server for node %s: %w", key, node.Name, err)
	}
	return address, nil
}
