package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/fences"
	"github.com/fairlead-io/fairlead/cli/installation"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/describe"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Read reads the state of the whole cluster once.
func Read(ctx context.Context, targets []cli.Target, live client.Reader, now time.Time) (View, error) {
	v := View{State: datapath.OK, Profiles: []ProfileView{}, LostNodes: []LostNode{}, NFSServices: []NFSService{}, Notes: []string{}, Installation: installation.Health{Findings: []string{}}}
	var err error
	v.Installation, err = installation.Read(ctx, live, now)
	if err := v.note("Fairlead's own replicas, lease and webhooks", err); err != nil {
		return v, err
	}
	v.State = cmp.Or(v.Installation.State, v.State)
	for _, t := range targets {
		v.Windows = windowsOf(t.Configuration, now)
		p, err := readProfile(ctx, t, v.Installation, now)
		if err != nil {
			return v, err
		}
		v.Profiles, v.State = append(v.Profiles, p), datapath.Worse(v.State, p.State)
	}
	if err := v.note("NodeFences", v.readNodes(ctx, live)); err != nil {
		return v, err
	}
	return v, v.note("NFSServices", v.readNFS(ctx, lists.NewLive(live)))
}

// readTwice reads again after a moment if something seems wrong: the hops of a workload that starts disagree for a moment.
func readTwice(ctx context.Context, targets []cli.Target, live client.Reader, now func() time.Time) (View, error) {
	v, err := Read(ctx, targets, live, now())
	if err == nil && v.State == datapath.Wrong && wait(ctx, interval) {
		v, err = Read(ctx, targets, live, now())
	}
	return v, err
}

// note turns an error of one part into a note, so that a missing right does not hide the other parts.
func (v *View) note(what string, err error) error {
	switch {
	case lists.NotInstalled(err):
		return nil
	case apierrors.IsForbidden(err):
		v.Notes = append(v.Notes, fmt.Sprintf("%s are not shown: %v", what, err))
		return nil
	}
	return err
}

// readProfile. itself is the state of Fairlead.
func readProfile(ctx context.Context, t cli.Target, itself installation.Health, now time.Time) (ProfileView, error) {
	p := ProfileView{Profile: t.Name, Namespace: t.Storage().Namespace, State: datapath.OK, Waiting: []v1.Setting{}, Progress: []Progress{}, Volumes: []datapath.Path{}}
	states, _, err := t.Reader.SettingStates(ctx)
	if err != nil {
		return p, err
	}
	for _, s := range states {
		if !s.DangerZone {
			continue
		}
		shown := describe.Setting(s, t.Storage())
		p.settings = append(p.settings, shown)
		if s.Applied {
			p.Applied++
			continue
		}
		p.Waiting = append(p.Waiting, shown)
		if s.Own != nil {
			for _, c := range s.Own.Status.Components {
				p.Progress = append(p.Progress, Progress{string(s.Name), c.Kind, int(c.Updated), int(c.Total)})
			}
		}
		p.State = datapath.Worse(p.State, datapath.Waiting)
		if s.Malformed() {
			p.State = datapath.Wrong
		}
	}
	object, err := t.Reader.RolloutObject(ctx)
	switch {
	case apierrors.IsNotFound(err):
		p.Network = NetworkView{Phase: "Unknown", Message: "the controller has not recorded the network yet: kubectl -n fairlead-system get pods"}
		p.State = datapath.Worse(p.State, datapath.Waiting)
	case err != nil:
		return p, err
	default:
		s := object.Status
		p.Network = NetworkView{
			Desired: s.Desired, Clients: s.Clients.Network, Servers: s.Servers.Network, Phase: s.Phase, Message: s.Message,
			Updated: int(s.Clients.Updated), Total: int(s.Clients.Total),
		}
		if s.Phase != string(rollout.PhaseApplied) {
			p.State = datapath.Worse(p.State, datapath.Waiting)
		}
		if _, err := reads.RecordOf(object); errors.Is(err, reads.ErrMalformedRecord) {
			p.Network.Phase, p.Network.Message = string(rollout.PhaseInvalid), err.Error()
			p.State = datapath.Wrong
		}
	}
	facts, err := t.Reader.DataPaths(ctx, t.Configuration.ClusterDomain, now)
	if err != nil {
		return p, err
	}
	if facts.Idle = itself.Idle(); facts.Rollout.Unlisted != "" {
		p.Network.Message += "; whether pods on the network can start is not known: " + facts.Rollout.Unlisted
	}
	if problem := catalog.NetworkProblem(facts.Rollout.Desired.Network, facts.Rollout.Networks); problem != "" {
		p.Network.Problem, p.State = problem, datapath.Wrong
	}
	p.Volumes = datapath.Follow(facts)
	if t.Unsure {
		keepFromActing(p.Volumes)
	}
	for _, path := range p.Volumes {
		p.State = datapath.Worse(p.State, path.State)
	}
	return p, nil
}

// keepFromActing replaces advice on data paths: a volume may be where a configuration wants it that could not be read.
func keepFromActing(paths []datapath.Path) {
	for _, p := range paths {
		for i := range p.Hops {
			if p.Hops[i].Command != "" {
				p.Hops[i].Command = "fairlead check"
			}
		}
	}
}

func (v *View) readNodes(ctx context.Context, live client.Reader) (err error) {
	if v.nodes, err = fences.Read(ctx, live); errors.Is(err, fences.ErrNotInstalled) {
		return nil
	}
	if err == nil && v.Installation.Idle() {
		err = v.note("Nodes", fences.CompareNodes(ctx, live, v.nodes))
	}
	for _, n := range v.nodes {
		if n.IsLost() {
			v.LostNodes = append(v.LostNodes, LostNode{n.Node, n.Phase, n.LostSince, n.WaitsFor, n.Next, n.OnlyIf, n.MayWrite()})
			v.State = datapath.Worse(v.State, datapath.Waiting)
		}
		if n.MayWrite() {
			v.State = datapath.Wrong
		}
	}
	return err
}

func (v *View) readNFS(ctx context.Context, live client.Reader) error {
	var list v1alpha1.NFSServiceList
	if err := live.List(ctx, &list); err != nil {
		return err
	}
	for _, s := range list.Items {
		shown := NFSService{Service: s.Namespace + "/" + s.Name, Ready: "Unknown", Backends: len(s.Status.Backends), Healthy: int(s.Status.HealthyBackends), State: datapath.Waiting}
		if ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.NFSReady); ready != nil {
			shown.Ready, shown.Message = string(ready.Status), ready.Message
		}
		switch {
		case shown.Ready == "False":
			shown.State = datapath.Wrong
		case shown.Ready == "True" && shown.Healthy == shown.Backends:
			shown.State = datapath.OK
		}
		v.NFSServices, v.State = append(v.NFSServices, shown), datapath.Worse(v.State, shown.State)
	}
	return nil
}

var errNoVolume = errors.New("no RWX volume of the profile has this name; \"fairlead volumes\" lists them")

// Find returns one volume of the view.
func (v View) Find(name string) (datapath.Path, error) {
	var names []string
	for _, p := range v.Profiles {
		for _, volume := range p.Volumes {
			if volume.Volume == name {
				return volume, nil
			}
			names = append(names, volume.Volume)
		}
	}
	return datapath.Path{}, fmt.Errorf("%q: %w%s", name, errNoVolume, cli.DidYouMean(name, names))
}
