package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
	"github.com/fairlead-io/fairlead/fence/watchers"
)

// serverKind is a kind of a storage system's servers.
type serverKind struct{ profile, kind string }

// askServers where they are that a fence must not hit: an MDS at a blocked address
// takes its file system down, and a manager works as a client. Not all are pods that
// can be seen. What is not told stays as it was last told.
func (w *Watchers) askServers(ctx context.Context, p config.FencingProfile) error {
	runner, ok := w.runners[p.Name]
	if !ok || !w.answers(p.Name) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	ask := func(kind string, args []string, parse func([]byte) ([]netip.Addr, error)) error {
		output, err := runner.Run(ctx, "ceph", args...)
		if err != nil {
			return fmt.Errorf("where %s are: %w", kind, err)
		}
		found, err := parse(output)
		if err != nil {
			return fmt.Errorf("where %s are: %w", kind, err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.servers[serverKind{p.Name, kind}] = found
		return nil
	}
	return errors.Join(
		ask("MDSs", watchers.MDSStatArgs(), func(output []byte) ([]netip.Addr, error) {
			mdss, err := watchers.ParseMDSStat(output)
			return mdss.Hosts, err
		}),
		ask("managers", watchers.MgrMetadataArgs(), watchers.ParseMgrMetadata),
	)
}

// serversOf a profile, as they were last told.
func (w *Watchers) serversOf(profile string) []netip.Addr {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []netip.Addr
	for k, hosts := range w.servers {
		if k.profile == profile {
			all = append(all, hosts...)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// addToldServers that the storage systems have told of. What is at an address of the
// node itself is lost with it, as a server's pod is.
func (r *FenceReader) addToldServers(f *fence.Facts, p config.FencingProfile) {
	hosts := slices.DeleteFunc(r.watchers.serversOf(p.Name), func(a netip.Addr) bool { return slices.Contains(f.Node.Addresses, a) })
	if len(hosts) > 0 {
		f.Servers = append(f.Servers, fence.Server{Name: "a metadata server or manager of " + p.Name, Addresses: hosts})
	}
}
