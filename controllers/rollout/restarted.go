package rollout

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// clientKind is the kind that CSI plugin pods are counted as. The DaemonSet,
// whose template package apply writes for other settings, counts there as itself.
const clientKind = "CSIPlugin"

// restartedFor are the settings for which a client pod is restarted: settings that are not applied,
// and choose its network if the pod is on another network, or else build its template.
// A restart for a per-volume network counts for no setting.
func (r *Reconciler) restartedFor(ctx context.Context, record rollout.Record, c storage.Client) ([]catalog.Name, error) {
	states, _, err := r.Cached.SettingStates(ctx)
	if err != nil {
		return nil, err
	}
	values := catalog.Values{}
	for _, s := range states {
		values[s.Name] = s.Value
	}
	var names []catalog.Name
	for _, s := range states {
		if s.Applied || neverSet(s) {
			continue
		}
		if on := c.IsOn(record.Clients); !on && choosesNetwork(s.Name, values) || on && r.buildsClients(s) {
			names = append(names, s.Name)
		}
	}
	return names, nil
}

// neverSet: the default was in effect before too.
func neverSet(s cluster.SettingState) bool {
	return s.Value.Source == catalog.SourceDefault &&
		(s.Own == nil || s.Own.Status.AppliedValue == nil || *s.Own.Status.AppliedValue == s.Value.Text)
}

// choosesNetwork reports whether a setting chooses the network of RWX volumes. storage-network does
// while the older RWX setting is true and the newer one has no value.
func choosesNetwork(name catalog.Name, values catalog.Values) bool {
	switch name {
	case catalog.EndpointNetworkForRWX, catalog.StorageNetworkForRWX:
		return true
	case catalog.StorageNetwork:
		return catalog.IsOn(values[catalog.StorageNetworkForRWX].Text) && strings.TrimSpace(values[catalog.EndpointNetworkForRWX].Text) == ""
	}
	return false
}

// buildsClients reports whether the setting is part of the CSI plugin's template.
func (r *Reconciler) buildsClients(s cluster.SettingState) bool {
	if s.Wants == nil || choosesNetwork(s.Name, nil) {
		return false
	}
	normal, err := s.Normalize(s.Value.Text)
	if err != nil {
		return false
	}
	_, concerns := s.Wants(normal, catalog.Component{Kind: catalog.DaemonSetComponent, Name: r.Profile.ClientDaemonSet, Client: true}, nil)
	return concerns
}

// countRestarts registers the counter of restarts, with a zero for each setting that restarts client
// pods, so that the first restart is an increase.
func (r *Reconciler) countRestarts(registry prometheus.Registerer) (err error) {
	if r.restarts, err = kit.RestartCounter(registry, r.Profile.Name); err != nil {
		return err
	}
	followed := catalog.Values{catalog.StorageNetworkForRWX: {Text: "true"}}
	for _, d := range catalog.DangerZone() {
		if choosesNetwork(d.Name, followed) || r.buildsClients(cluster.SettingState{Definition: d, Value: catalog.Value{Text: d.Default}}) {
			r.restarts.WithLabelValues(string(d.Name), clientKind)
		}
	}
	return nil
}

// counted counts a restart for each of the settings.
func (r *Reconciler) counted(names []catalog.Name) {
	for _, name := range names {
		r.restarts.WithLabelValues(string(name), clientKind).Inc()
	}
}
