package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
)

const (
	// sourced is how long it is remembered what watchers were found for the ledger.
	sourced = 4 * time.Minute
	// settled is how long a volume must have been attached: the watch of whoever had
	// it before ends 30 s after he was last heard of.
	settled = 2 * time.Minute
	// maxSourced volumes of an identity are asked for.
	maxSourced = 4
)

// ledgerKey is one identity in one boot of a node.
type ledgerKey struct {
	node, boot string
	identityKey
}

type remembered struct {
	at      time.Time
	cidrs   []string
	problem string
}

// WithWatchers is the same reader, but watchers are the source of addresses where the
// configuration says so.
func (r *FenceReader) WithWatchers(w *Watchers) *FenceReader {
	with := *r
	with.watchers = w
	return &with
}

// watched are the addresses that an identity's own volumes are open from. All of
// them have to say the same one address: any other watcher may be anybody.
func (r *FenceReader) watched(ctx context.Context, v *FenceView, id identityKey) (cidrs []string, problem string, err error) {
	p, _ := r.profile(id.driver)
	if r.watchers == nil {
		return nil, "watchers are not asked here", nil
	}
	if id.clusterID != p.Namespace {
		return nil, "watchers could not be asked: " + errOtherCluster.Error(), nil
	}
	key := ledgerKey{v.Facts.Node.Name, v.Facts.Node.Machine.BootID, id}
	w := r.watchers
	w.mu.Lock()
	last, known := w.remembered[key]
	w.mu.Unlock()
	if known && v.Facts.Now.Sub(last.at) < sourced {
		return last.cidrs, last.problem, nil
	}
	cidrs, problem, err = r.askWatchers(ctx, v, p, id)
	if err != nil {
		return nil, "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.remembered, func(_ ledgerKey, r remembered) bool { return v.Facts.Now.Sub(r.at) >= sourced })
	w.remembered[key] = remembered{v.Facts.Now, cidrs, problem}
	return cidrs, problem, nil
}

func (r *FenceReader) askWatchers(ctx context.Context, v *FenceView, p config.FencingProfile, id identityKey) (cidrs []string, problem string, err error) {
	var volumes []string
	for _, a := range v.attached {
		if v.Facts.Now.Sub(a.created) >= settled {
			volumes = append(volumes, a.volume)
		}
	}
	byProfile, err := r.exclusive(ctx, v, func(volume fence.Volume) bool {
		return volume.Driver == id.driver && volume.ClusterID == id.clusterID
	}, volumes...)
	if err != nil {
		return nil, "", err
	}
	asked := byProfile[p.Name][:min(len(byProfile[p.Name]), maxSourced)]
	if len(asked) == 0 {
		return nil, fmt.Sprintf("no volume that only this node has is attached to it for %s, so watchers tell nothing yet", settled), nil
	}
	found, failed := r.watchers.addresses(ctx, p, asked)
	if failed != nil {
		return nil, Clip("watchers could not be asked: "+failed.Error(), maxMessage), nil
	}
	var all []netip.Addr
	for _, volume := range asked {
		if n := len(found[volume.Name]); n != 1 {
			return nil, fmt.Sprintf("volume %s is open from %d addresses: which of them is the node's is not known", volume.Name, n), nil
		}
		all = append(all, found[volume.Name]...)
	}
	slices.SortFunc(all, netip.Addr.Compare)
	if all = slices.Compact(all); len(all) != 1 {
		return nil, fmt.Sprintf("the node's volumes are open from %d addresses: which of them is the node's is not known", len(all)), nil
	}
	return []string{fence.HostPrefix(all[0]).String()}, "", nil
}

// elsewhere are the volumes that other nodes have, or had when they were lost.
func (r *FenceReader) elsewhere(ctx context.Context, node string) (map[string]bool, error) {
	var list storagev1.VolumeAttachmentList
	if err := r.objects.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	volumes := map[string]bool{}
	for i := range list.Items {
		if name := list.Items[i].Spec.Source.PersistentVolumeName; name != nil && list.Items[i].Spec.NodeName != node {
			volumes[*name] = true
		}
	}
	var records v1alpha1.NodeFenceList
	if err := r.objects.List(ctx, &records, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeFences: %w", err)
	}
	for i := range records.Items {
		if records.Items[i].Name == node {
			continue
		}
		for _, v := range records.Items[i].Status.Volumes {
			volumes[v.PersistentVolume] = true
		}
	}
	return volumes, nil
}
