package rest

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// Volumes of all namespaces, which are listed side by side. The error of one
// namespace stops no other (the released manager dropped everything:
// ListSharedVolumes); it is in the listing. An error is returned if there is no
// listing at all.
func (c *Client) Volumes(ctx context.Context) (ondat.Listing, error) {
	listing := ondat.Listing{Listed: map[string]bool{}, Failed: map[string]error{}}
	var first error // of all, for the metric
	defer c.metrics.helper(helperList)(&first)
	var namespaces []namespace
	if err := c.call(ctx, request{doing: "listing namespaces", method: http.MethodGet, path: []string{"namespaces"}}, &namespaces); err != nil {
		first = err
		return listing, err
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(maxAtOnce)
	for _, n := range namespaces {
		group.Go(func() error {
			var volumes []volume
			err := c.call(ctx, request{
				doing: "listing the volumes of namespace " + printable(n.Name), method: http.MethodGet, path: []string{"namespaces", n.ID, "volumes"},
			}, &volumes)
			mu.Lock()
			defer mu.Unlock()
			if IsCode(err, http.StatusNotFound) { // deleted since it was listed
				err, volumes = nil, nil
			}
			if err != nil {
				listing.Failed[n.ID], first = err, err
				return nil
			}
			listing.Listed[n.ID] = true
			for _, v := range volumes {
				listing.Volumes = append(listing.Volumes, v.domain(n.ID))
			}
			return nil
		})
	}
	return listing, group.Wait()
}

// Volume reads one volume.
func (c *Client) Volume(ctx context.Context, namespaceID, id string) (_ ondat.Volume, err error) {
	defer c.metrics.helper(helperGet)(&err)
	var v volume
	err = c.call(ctx, request{doing: "reading volume " + printable(id), method: http.MethodGet, path: []string{"namespaces", namespaceID, "volumes", id}}, &v)
	if err == nil && v.ID != id {
		err = fmt.Errorf("reading volume %s at Ondat's API: the answer is another volume's: what answers at %s %w", printable(id), c.base.Host, errAnswer)
	}
	return v.domain(namespaceID), err
}

// SetMountEndpoint sets the address at which the control plane mounts the volume; an
// empty one clears it. v is the volume as last read. If it was changed meanwhile, it
// is read again and the change is sent once more. If its address differs from that of
// v, another process publishes it, and nothing is sent.
func (c *Client) SetMountEndpoint(ctx context.Context, v ondat.Volume, endpoint string) (err error) {
	defer c.metrics.helper(helperPublish)(&err)
	put := func(version string) error {
		return c.call(ctx, request{
			doing: "setting the mount endpoint of volume " + printable(v.Name), method: http.MethodPut,
			path: []string{"namespaces", v.NamespaceID, "volumes", v.ID, "nfs", "mount-endpoint"},
			body: mountEndpoint{MountEndpoint: endpoint, Version: version},
		}, nil)
	}
	err = put(v.Version)
	if !IsCode(err, http.StatusPreconditionFailed) {
		return err
	}
	again, err := c.Volume(ctx, v.NamespaceID, v.ID)
	if err != nil {
		return err
	}
	switch was, is := v.Labels[ondat.LabelMountEndpoint], again.Labels[ondat.LabelMountEndpoint]; {
	case is == endpoint:
		return nil
	case is != was:
		return fmt.Errorf("%s: its mount endpoint was changed from %q to %q meanwhile: Fairlead checks the volume again", v.Title(), was, is)
	}
	return put(again.Version)
}
