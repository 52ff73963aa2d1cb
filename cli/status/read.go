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
func Read(ctx context.Context, t cli.Target, now time.Time) (View, error) {
	v := View{State: datapath.OK, LostNodes: []LostNode{}, NFSServices: []NFSService{}, Notes: []string{}, Installation: installation.Health{Findings: []string{}}}
	var err error
	v.Installation, err = installation.Read(ctx, t.Live, now)
	if err := v.note("Fairlead's own replicas, lease and webhooks", err); err != nil {
		return v, err
	}
	v.State = cmp.Or(v.Installation.State, v.State)
	if t.Longhorn != nil {
		v.Windows = windowsOf(t.Longhorn, now)
		l, err := readLonghorn(ctx, t, v.Installation, now)
		if err != nil {
			return v, err
		}
		v.Longhorn, v.State = &l, datapath.Worse(v.State, l.State)
	}
	if err := v.note("NodeFences", v.readNodes(ctx, t.Live)); err != nil {
		return v, err
	}
	return v, v.note("NFSServices", v.readNFS(ctx, lists.NewLive(t.Live)))
}

// readTwice reads again after a moment if something seems wrong: the hops of a workload that starts disagree for a moment.
func readTwice(ctx context.Context, t cli.Target, now func() time.Time) (View, error) {
	v, err := Read(ctx, t, now())
	if err == nil && v.State == datapath.Wrong && wait(ctx, interval) {
		v, err = Read(ctx, t, now())
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

// readLonghorn. itself is the state of Fairlead.
func readLonghorn(ctx context.Context, t cli.Target, itself installation.Health, now time.Time) (LonghornView, error) {
	l := LonghornView{Namespace: t.Longhorn.Namespace, State: datapath.OK, Waiting: []v1.Setting{}, Progress: []Progress{}, Volumes: []datapath.Path{}}
	states, _, err := t.Reader.SettingStates(ctx)
	if err != nil {
		return l, err
	}
	for _, s := range states {
		if !s.DangerZone {
			continue
		}
		shown := describe.Setting(s, t.Longhorn.Names())
		l.settings = append(l.settings, shown)
		if s.Applied {
			l.Applied++
			continue
		}
		l.Waiting = append(l.Waiting, shown)
		if s.Own != nil {
			for _, c := range s.Own.Status.Components {
				l.Progress = append(l.Progress, Progress{string(s.Name), c.Kind, int(c.Updated), int(c.Total)})
			}
		}
		l.State = datapath.Worse(l.State, datapath.Waiting)
		if s.Malformed() {
			l.State = datapath.Wrong
		}
	}
	object, err := t.Reader.RolloutObject(ctx)
	switch {
	case apierrors.IsNotFound(err):
		l.Network = NetworkView{Phase: "Unknown", Message: "the controller has not recorded the network yet: kubectl -n fairlead-system get pods"}
		l.State = datapath.Worse(l.State, datapath.Waiting)
	case err != nil:
		return l, err
	default:
		s := object.Status
		l.Network = NetworkView{
			Desired: s.Desired, Clients: s.Clients.Network, Servers: s.Servers.Network, Phase: s.Phase, Message: s.Message,
			Updated: int(s.Clients.Updated), Total: int(s.Clients.Total),
		}
		if s.Phase != string(rollout.PhaseApplied) {
			l.State = datapath.Worse(l.State, datapath.Waiting)
		}
		if _, err := reads.RecordOf(object); errors.Is(err, reads.ErrMalformedRecord) {
			l.Network.Phase, l.Network.Message = string(rollout.PhaseInvalid), err.Error()
			l.State = datapath.Wrong
		}
	}
	facts, err := t.Reader.DataPaths(ctx, t.Configuration.ClusterDomain, now)
	if err != nil {
		return l, err
	}
	if facts.Idle = itself.Idle(); facts.Rollout.Unlisted != "" {
		l.Network.Message += "; whether pods on the network can start is not known: " + facts.Rollout.Unlisted
	}
	if problem := catalog.NetworkProblem(facts.Rollout.Desired.Network, facts.Rollout.Networks); problem != "" {
		l.Network.Problem, l.State = problem, datapath.Wrong
	}
	l.Volumes = datapath.Follow(facts)
	if t.Unsure {
		keepFromActing(l.Volumes)
	}
	for _, path := range l.Volumes {
		l.State = datapath.Worse(l.State, path.State)
	}
	return l, nil
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

var errNoVolume = errors.New("no RWX volume has this name; \"fairlead volumes\" lists them")

// Volumes are the shared volumes.
func (v View) Volumes() []datapath.Path {
	if v.Longhorn == nil {
		return nil
	}
	return v.Longhorn.Volumes
}

// Find returns one volume of the view.
func (v View) Find(name string) (datapath.Path, error) {
	var names []string
	for _, volume := range v.Volumes() {
		if volume.Volume == name {
			return volume, nil
		}
		names = append(names, volume.Volume)
	}
	return datapath.Path{}, fmt.Errorf("%q: %w%s", name, errNoVolume, cli.DidYouMean(name, names))
}
