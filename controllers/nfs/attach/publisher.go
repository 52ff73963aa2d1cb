package attach

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
)

// Publisher answers ControllerPublishVolume and ControllerUnpublishVolume for the
// external attacher. It writes nothing: the external attacher writes what Publish
// returns into the VolumeAttachment, from which the pools have it.
type Publisher struct {
	*Assigner
	// Wait returns once the pools are complete. nil: they are.
	Wait func(context.Context) error

	mu sync.Mutex
	// bare are publications without a VolumeAttachment, by volume and node.
	bare map[publication]bool
}

var (
	_ csi.Publisher    = (*Publisher)(nil)
	_ csi.VolumeFinder = (*Publisher)(nil)
)

type publication struct{ driver, handle, node string }

func (p publication) key() pools.Key { return "csi " + p.driver + " " + p.handle + " " + p.node }

// Publish implements csi.Publisher. Errors are of the kinds ErrNotFound, ErrInvalid
// and ErrUnavailable.
func (p *Publisher) Publish(ctx context.Context, driver, volumeHandle, nodeID string) (map[string]string, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	service, err := p.serviceOfHandle(ctx, driver, volumeHandle)
	if err != nil {
		return nil, err
	}
	name, err := p.nodeName(ctx, driver, nodeID)
	if err != nil {
		return nil, err
	}
	node, err := p.node(ctx, driver, name)
	if err != nil {
		return nil, err
	}
	va, err := p.attachment(ctx, driver, volumeHandle, name)
	if err != nil {
		return nil, err
	}
	if va != nil && pools.AddressOf(va) != "" {
		p.Pools.Record(service, node, string(va.UID), pools.AddressOf(va))
		return map[string]string{csi.AddressKey(driver): pools.AddressOf(va)}, nil
	}
	address, err := p.assignTo(ctx, service, node, va, publication{driver, volumeHandle, name})
	if err != nil {
		return nil, err
	}
	return map[string]string{csi.AddressKey(driver): address}, nil
}

// assignTo assigns under the UID of the VolumeAttachment, so that its deletion ends the assignment. Without a
// VolumeAttachment, Unpublish ends the assignment.
func (p *Publisher) assignTo(ctx context.Context, service types.NamespacedName, node assign.Node, va *storagev1.VolumeAttachment, of publication) (string, error) {
	if va != nil {
		return p.assign(ctx, service, node, string(va.UID))
	}
	p.mu.Lock()
	if p.bare == nil {
		p.bare = map[publication]bool{}
	}
	p.bare[of] = true
	p.mu.Unlock()
	return p.assign(ctx, service, node, of.key())
}

// Unpublish implements csi.Publisher. An empty nodeID means all nodes (CSI spec,
// ControllerUnpublishVolume). A VolumeAttachment that is not being deleted counts on.
func (p *Publisher) Unpublish(ctx context.Context, driver, volumeHandle, nodeID string) error {
	if err := p.wait(ctx); err != nil {
		return err
	}
	name := nodeID
	if nodeID != "" {
		known, err := p.nodeName(ctx, driver, nodeID)
		switch {
		case err == nil:
			name = known
		case !isNotFound(err):
			return err
		}
		va, err := p.attachment(ctx, driver, volumeHandle, name)
		if err != nil {
			return err
		}
		if va != nil && va.DeletionTimestamp != nil {
			p.Pools.Detach(string(va.UID))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for of := range p.bare {
		if of.driver == driver && of.handle == volumeHandle && (nodeID == "" || of.node == name) {
			p.Pools.Detach(of.key())
			delete(p.bare, of)
		}
	}
	return nil
}

// HasVolume implements csi.VolumeFinder.
func (p *Publisher) HasVolume(ctx context.Context, driver, volumeHandle string) (bool, error) {
	list, err := p.volumes(ctx, driver, volumeHandle)
	return len(list) > 0, err
}

func (p *Publisher) wait(ctx context.Context) error {
	if p.Wait == nil {
		return nil
	}
	if err := p.Wait(ctx); err != nil {
		return fmt.Errorf("the assignments are not read yet: %w: %w", err, csi.ErrUnavailable)
	}
	return nil
}

// serviceOfHandle is the NFSService of a volume. PersistentVolumes may share a handle if they name one service.
func (p *Publisher) serviceOfHandle(ctx context.Context, driver, handle string) (types.NamespacedName, error) {
	list, err := p.volumes(ctx, driver, handle)
	if err != nil {
		return types.NamespacedName{}, err
	}
	if len(list) == 0 {
		return types.NamespacedName{}, fmt.Errorf("no PersistentVolume of driver %s has volumeHandle %s: %w", driver, handle, csi.ErrNotFound)
	}
	service, err := p.services().ServiceOf(list[0].Spec.CSI, list[0].Name)
	if err != nil {
		return service, fmt.Errorf("%w: %w", err, csi.ErrInvalid)
	}
	return service, p.checkHandle(list, service, list[0].Name)
}

// nodeName is the Kubernetes node with a node ID: the one whose CSINode reports it, else the one of that name.
func (p *Publisher) nodeName(ctx context.Context, driver, nodeID string) (string, error) {
	var list storagev1.CSINodeList
	if err := p.Cached.List(ctx, &list, client.MatchingFields{NodeIndex: handleKey(driver, nodeID)}); err != nil {
		return "", fmt.Errorf("looking for node %s: %w", nodeID, err)
	}
	if len(list.Items) > 0 {
		return list.Items[0].Name, nil
	}
	_, err := p.node(ctx, driver, nodeID)
	return nodeID, err
}

// attachment is the VolumeAttachment of a volume on a node, by its name; nil is none.
func (p *Publisher) attachment(ctx context.Context, driver, handle, node string) (*storagev1.VolumeAttachment, error) {
	var va storagev1.VolumeAttachment
	err := p.get(ctx, client.ObjectKey{Name: attachmentName(driver, handle, node)}, &va)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the VolumeAttachment of volume %s on node %s: %w", handle, node, err)
	}
	return &va, nil
}

// attachmentName is the name that Kubernetes gives (pkg/volume/csi/csi_attacher.go: getAttachmentName).
func attachmentName(driver, handle, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}
