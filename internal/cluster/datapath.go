package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// DataPaths gathers the facts of the data paths of all shared volumes. A value in effect that is not well
// formed counts as the recorded network.
func (r *Reader) DataPaths(ctx context.Context, clusterDomain string, now time.Time) (datapath.Facts, error) {
	f := datapath.Facts{Profile: r.profile, ClusterDomain: clusterDomain, Published: map[string][]netip.Addr{}, Endpoints: map[string]string{}, Failed: map[string]bool{}}
	var err error
	if f.Rollout, err = r.Rollout(ctx, now); err != nil {
		return f, err
	}
	if f.Rollout.Invalid != nil {
		f.Rollout.Desired, f.Rollout.Invalid = f.Rollout.Record.Servers, nil
	}
	if err := r.addRequests(ctx, &f.Rollout); err != nil {
		return f, err
	}
	if err := r.addPublished(ctx, f.Published); err != nil {
		return f, err
	}
	return f, eachHere(ctx, r, &longhorn.ShareManagerList{}, "share managers", func(sm *longhorn.ShareManager) {
		f.Endpoints[sm.Name], f.Failed[sm.Name] = sm.Status.Endpoint, sm.Status.State == longhorn.ShareManagerError
	})
}

// addPublished adds the addresses of Fairlead's EndpointSlices, by Service.
func (r *Reader) addPublished(ctx context.Context, published map[string][]netip.Addr) error {
	err := lists.ForEach(ctx, r.objects, &discoveryv1.EndpointSliceList{}, func(s *discoveryv1.EndpointSlice) {
		service := s.Labels[discoveryv1.LabelServiceName]
		for _, e := range s.Endpoints {
			for _, text := range e.Addresses {
				if address, err := netip.ParseAddr(text); err == nil {
					published[service] = append(published[service], address)
				}
			}
		}
	}, client.InNamespace(r.profile.Namespace), client.MatchingLabels{discoveryv1.LabelManagedBy: storage.SliceManager})
	if err != nil {
		return fmt.Errorf("listing EndpointSlices: %w", err)
	}
	return nil
}
