package standin

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
)

// seedRelease turns the settings of v1.7.2 into those of the stand-in's version.
func (l Longhorn) seedRelease(ctx context.Context) error {
	if err := l.patch(ctx, l.object("Setting", "current-longhorn-version"), map[string]any{"value": l.release.Version}); err != nil {
		return err
	}
	for name, value := range l.release.Settings {
		setting := l.object("Setting", name)
		setting.Object["value"] = value
		if err := l.create(ctx, setting); err != nil {
			return err
		}
	}
	for _, name := range l.release.Without {
		if err := client.IgnoreNotFound(l.client.Delete(ctx, l.object("Setting", name))); err != nil {
			return fmt.Errorf("deleting setting %s: %w", name, err)
		}
	}
	return nil
}

// Upgrade brings the settings to those of the release, as its manager does when it starts (InitSettings in
// datastore/longhorn.go), then the CSI plugin. Controllers of the version before must have ended.
func (l Longhorn) Upgrade(ctx context.Context) error {
	if err := l.inheritNetwork(ctx); err != nil {
		return err
	}
	if err := l.seedRelease(ctx); err != nil {
		return err
	}
	return l.deployPlugin(ctx)
}

// inheritNetwork follows syncSettingEndpointNetworkForRWXVolume in datastore/longhorn.go of v1.11.1.
func (l Longhorn) inheritNetwork(ctx context.Context) error {
	values, err := l.currentSettings(ctx)
	if err != nil {
		return err
	}
	if _, there := values[release.RWXEndpointNetwork]; there || !l.release.EndpointNetwork || !release.SwitchedOn(values[release.RWXOnStorage]) {
		return nil
	}
	setting := l.object("Setting", release.RWXEndpointNetwork)
	setting.Object["value"] = values[release.StorageNetwork]
	return l.create(ctx, setting)
}
