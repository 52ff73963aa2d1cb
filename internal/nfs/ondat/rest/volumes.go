package rest

import (
	"context"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
)

// namespace is go-api's Namespace.
type namespace struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// volume is go-api's Volume. nfs, and the endpoint in it, may be null.
type volume struct {
	ID             string            `json:"id"`
	Name           string            `json:"name"`
	Labels         map[string]string `json:"labels"`
	AttachmentType string            `json:"attachmentType"`
	NFS            struct {
		ServiceEndpoint string `json:"serviceEndpoint"`
	} `json:"nfs"`
	Version string `json:"version"`
}

// mountEndpoint is go-api's NfsVolumeMountEndpoint. An empty endpoint clears the
// label: it is the default of the field (openapi.yaml), and go-api leaves it out.
type mountEndpoint struct {
	MountEndpoint string `json:"mountEndpoint,omitempty"`
	Version       string `json:"version,omitempty"`
}

// Volumes of all namespaces, which are listed side by side. The error of one
// namespace stops no other (the released manager dropped everything:
// ListSharedVolumes); it is in the listing. An error is returned if there is no
// listing at all.
func (c *Client) Volumes(ctx context.Context) (ondat.Listing, error) {
	listing := ondat.Listing{Listed: map[string]bool{}, Failed: map[string]error{}}
	var first error // of all, for the metric
	defer c.metrics.helper("list_shared_volumes")(&first)
	var namespaces []namespace
	if first = c.call(ctx, request{doing: "listing namespaces", method: http.MethodGet, path: []string{"namespaces"}}, &namespaces); first != nil {
		return listing, first
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(maxAtOnce)
	for _, n := range namespaces {
		group.Go(func() error {
			var volumes []volume
			err := c.call(ctx, request{
				doing: "listing the volumes of namespace " + ondat.Printable(n.Name), method: http.MethodGet, path: []string{"namespaces", n.ID, "volumes"},
			}, &volumes)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && !isStatus(err, http.StatusNotFound) { // else it was deleted since it was listed
				listing.Failed[n.ID], first = err, err
				return nil
			}
			listing.Listed[n.ID] = true
			for _, v := range volumes {
				listing.Volumes = append(listing.Volumes, ondat.Volume{
					ID: v.ID, Name: v.Name, NamespaceID: n.ID, Labels: v.Labels, AttachmentType: v.AttachmentType,
					ServiceEndpoint: v.NFS.ServiceEndpoint, Version: v.Version,
				})
			}
			return nil
		})
	}
	return listing, group.Wait()
}

// SetMountEndpoint sets the address at which the control plane mounts the volume; an
// empty one clears it. v is the volume as last listed: if it was changed meanwhile, the
// control plane refuses, and the next poll decides again.
func (c *Client) SetMountEndpoint(ctx context.Context, v ondat.Volume, endpoint string) (err error) {
	defer c.metrics.helper("set_external_endpoint")(&err)
	return c.call(ctx, request{
		doing: "setting the mount endpoint of volume " + ondat.Printable(v.Name), method: http.MethodPut,
		path: []string{"namespaces", v.NamespaceID, "volumes", v.ID, "nfs", "mount-endpoint"},
		body: mountEndpoint{MountEndpoint: endpoint, Version: v.Version},
	}, nil)
}
