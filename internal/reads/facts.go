package reads

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/describe"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// FactsOptions choose how facts are gathered.
type FactsOptions struct {
	Now time.Time
	// Policy of roll-outs, from the configuration.
	Policy rollout.Policy
	// VolumeNetworks: volumes may have per-volume networks, and their requests are read.
	VolumeNetworks bool
	// AsReported, for what is only announced: engines, replicas and the requests of volumes are not read. There may be very many.
	// Instance managers run what they report, and per-volume networks stay as the record has them. Whoever restarts an instance
	// manager reads its engines and replicas right before.
	AsReported bool
}

// Facts gathers all facts of a plan, each list once. A cluster without a network record counts as
// on the cluster network.
func (r *Reader) Facts(ctx context.Context, o FactsOptions) (planner.Facts, error) {
	f := planner.Facts{Names: r.names, Now: o.Now}
	if err := r.addSettings(ctx, &f); err != nil {
		return f, err
	}
	classes, byDefault, err := r.priorityClasses(ctx)
	if err != nil {
		return f, err
	}
	f.Classes = classes
	if f.Nodes, err = r.nodes(ctx); err != nil {
		return f, err
	}
	var pods storagePods
	if f.Rollout, pods, err = r.rollout(ctx, classesFor(byDefault, f.Values), f.Values, o.Now); err != nil {
		return f, err
	}
	f.Rollout.Policy = o.Policy
	markLost(f.Rollout.Clients, f.Nodes)
	switch {
	case o.AsReported:
		for _, a := range f.Rollout.Record.VolumeServers {
			f.Rollout.ClassNetworks = append(f.Rollout.ClassNetworks, a.Network)
		}
	case o.VolumeNetworks:
		if err := r.addRequests(ctx, &f.Rollout); err != nil {
			return f, err
		}
	}
	// Last: engines and replicas are written before their instance managers report them.
	f.Components, err = r.components(ctx, pods, f.Rollout.Volumes, f.Nodes, o.AsReported)
	return f, err
}

// addSettings reads the values in effect, and the last reports on them.
func (r *Reader) addSettings(ctx context.Context, f *planner.Facts) error {
	ours, theirs, err := r.settings(ctx)
	if err != nil {
		return err
	}
	f.Reported = map[catalog.Name]planner.Reported{}
	for i := range ours {
		f.Reported[catalog.Name(ours[i].Name)] = Reported(&ours[i])
	}
	f.OwnValues, f.SystemValues = describe.Values(ours, theirs)
	f.Values = catalog.Resolve(f.OwnValues, f.SystemValues)
	return nil
}

// Reported reads the status of a Setting.
func Reported(s *v1alpha1.Setting) planner.Reported {
	return planner.Reported{Rolled: s.Status.AppliedValue, Applied: s.Status.Applied, Underway: s.Status.Underway}
}

// Rollout gathers the facts on the network of shared volumes, without the requests of volumes, and the values in effect.
func (r *Reader) Rollout(ctx context.Context, now time.Time) (rollout.Rollout, catalog.Values, error) {
	own, system, err := r.Values(ctx)
	if err != nil {
		return rollout.Rollout{}, nil, err
	}
	values := catalog.Resolve(own, system)
	f, _, err := r.rollout(ctx, podClasses{}, values, now)
	return f, values, err
}

// rollout reads the record before the pods, as it is the precondition of steps. It reads volumes after the pods: a volume that
// is attached meanwhile counts as attached.
func (r *Reader) rollout(ctx context.Context, classes podClasses, values catalog.Values, now time.Time) (f rollout.Rollout, pods storagePods, err error) {
	f.Now, f.MountsFromHost = now, r.names.MountsFromHost
	f.Desired, f.Invalid = catalog.SharedVolumeNetwork(values, r.names)
	if f.Record, err = r.Record(ctx); IgnoreNoRecord(err) != nil {
		return f, pods, err
	}
	if pods, err = r.storagePods(ctx, classes); err != nil {
		return f, pods, err
	}
	f.DaemonSet, f.Clients, f.Servers = r.daemonSetFacts(pods.daemonSets, pods.daemonPods), pods.clients, pods.servers
	rwx.FindClashes(f.Clients, f.Servers)
	if f.Configs, err = NetworkConfigs(ctx, r.objects); err != nil {
		f.Unlisted = err.Error() // other work goes on
	} else {
		f.Networks = readable(f.Configs)
	}
	if f.Services, err = r.Services(ctx); err != nil {
		return f, pods, err
	}
	f.Volumes, err = r.Volumes(ctx)
	return f, pods, err
}

// DataPaths gathers the facts of the data paths of all shared volumes. A value in effect that is not well
// formed counts as the recorded network.
func (r *Reader) DataPaths(ctx context.Context, clusterDomain string, now time.Time) (datapath.Facts, error) {
	f := datapath.Facts{Names: r.names, ClusterDomain: clusterDomain, Published: map[string][]netip.Addr{}, Endpoints: map[string]string{}, Failed: map[string]bool{}}
	var err error
	if f.Rollout, _, err = r.Rollout(ctx, now); err != nil {
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
	_, system, err := r.Values(ctx)
	if err != nil {
		return f, err
	}
	f.Place = rollout.MountPlace(system, r.names)
	if f.Dead, err = r.deadMounts(ctx); err != nil {
		return f, err
	}
	return f, eachHere(ctx, r, &longhorn.ShareManagerList{}, "share managers", func(sm *longhorn.ShareManager) {
		f.Endpoints[sm.Name], f.Failed[sm.Name] = sm.Status.Endpoint, sm.Status.State == longhorn.ShareManagerError
	})
}

// deadMounts are those on record whose pods are still there: the record is looked through once a minute, and stays while
// Fairlead is down. A pod that may not be read counts as there.
func (r *Reader) deadMounts(ctx context.Context) (dead []rwx.DeadMount, _ error) {
	object, err := r.RolloutObject(ctx)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	for _, d := range object.Status.DeadMounts {
		namespace, name, _ := strings.Cut(d.Pod, "/")
		var pod metav1.PartialObjectMetadata
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		err := r.objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pod)
		switch {
		case apierrors.IsForbidden(err):
		case apierrors.IsNotFound(err) || err == nil && string(pod.UID) != d.UID:
			continue
		case err != nil:
			return nil, fmt.Errorf("reading pod %s: %w", d.Pod, err)
		}
		dead = append(dead, rwx.DeadMount(d))
	}
	return dead, nil
}

// addPublished adds the addresses of Fairlead's EndpointSlices, by Service.
func (r *Reader) addPublished(ctx context.Context, published map[string][]netip.Addr) error {
	err := lists.ForEach(ctx, r.objects, &discoveryv1.EndpointSliceList{}, func(s *discoveryv1.EndpointSlice) {
		service := s.Labels[discoveryv1.LabelServiceName]
		published[service] = append(published[service], PublishedIn(s)...)
	}, client.InNamespace(r.names.Namespace), client.MatchingLabels{discoveryv1.LabelManagedBy: rwx.SliceManager})
	if err != nil {
		return fmt.Errorf("listing EndpointSlices: %w", err)
	}
	return nil
}
