package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/cli/fences"
	"github.com/fairlead-io/fairlead/internal/cli/nfs"
	"github.com/fairlead-io/fairlead/internal/cli/plan"
	"github.com/fairlead-io/fairlead/internal/cli/status"
	"github.com/fairlead-io/fairlead/internal/datapath"
)

// reading is the cluster at one moment. All views share it, so nothing changes it.
type reading struct {
	at       time.Time
	status   status.View
	fences   []fences.View
	services []nfs.View
	// notes say what could not be read.
	notes []string
}

// source reads the cluster.
type source interface {
	read(ctx context.Context, now time.Time) (*reading, error)
	// plan of changes to the settings of a profile.
	plan(ctx context.Context, profile string, c plan.Changes, now time.Time) (plan.View, error)
}

// clusterSource reads with the rights of the user.
type clusterSource struct {
	targets []cli.Target
	live    client.Reader
	// note on the configuration; may be empty.
	note string
}

const roles = "ClusterRole fairlead-planner"

func (s clusterSource) read(ctx context.Context, now time.Time) (*reading, error) {
	r := &reading{at: now}
	if s.note != "" {
		r.notes = append(r.notes, s.note)
	}
	var err error
	if r.status, err = status.Read(ctx, s.targets, s.live, now); err != nil {
		return nil, cli.ExplainBy(err, roles)
	}
	r.notes = append(r.notes, r.status.Notes...)
	r.fences = r.status.Nodes()
	r.services, err = nfs.Read(ctx, s.live, s.targets[0].Configuration.NFS.DefaultServices())
	switch {
	case apierrors.IsForbidden(err):
		r.notes = append(r.notes, "nodes of NFS services are not shown: "+cli.ExplainBy(err, "ClusterRole fairlead-nfs-viewer").Error())
	case err != nil && !errors.Is(err, nfs.ErrNotInstalled):
		return nil, err
	}
	return r, nil
}

var errNoProfile = errors.New("is not in the configuration")

func (s clusterSource) plan(ctx context.Context, profile string, c plan.Changes, now time.Time) (plan.View, error) {
	for _, t := range s.targets {
		if t.Name == profile {
			view, err := plan.Read(ctx, t, c, now)
			return view, cli.ExplainBy(err, roles)
		}
	}
	return plan.View{}, fmt.Errorf("profile %q %w", profile, errNoProfile)
}

// volumes of all profiles, the worst first.
func (r *reading) volumes() []datapath.Path {
	var all []datapath.Path
	for _, p := range r.status.Profiles {
		all = append(all, p.Volumes...)
	}
	slices.SortStableFunc(all, func(a, b datapath.Path) int {
		return cmp.Or(cmp.Compare(b.State.Severity(), a.State.Severity()), cmp.Compare(a.Volume, b.Volume))
	})
	return all
}
