package catalog

import "strings"

// wants returns a Definition.Wants that asks for the normalized value.
// A malformed value, from before Fairlead's checks, asks for nothing, and so restarts no pod.
func wants(about func(Component) bool, normalize func(string) (string, error)) func(string, Component, Nodes) (string, bool) {
	return func(value string, c Component, _ Nodes) (string, bool) {
		if !about(c) {
			return "", false
		}
		want, err := normalize(value)
		if err != nil {
			return "", false
		}
		return want, true
	}
}

// everyComponent matches the components that the storage system creates and manages.
func everyComponent(c Component) bool {
	switch c.Kind {
	case Deployment, DaemonSetComponent, BackingImageManager, ShareManager, InstanceManager:
		return true
	}
	return false
}

func onStorageNetwork(c Component) bool {
	return c.Kind == InstanceManager || c.Kind == BackingImageManager
}

func instanceManager(c Component) bool { return c.Kind == InstanceManager }

func instanceManagerOf(engine string) func(Component) bool {
	return func(c Component) bool { return c.Kind == InstanceManager && c.Engine == engine }
}

// engineImage matches the DaemonSet of an engine image. Source: longhorn-manager
// types/types.go, GetDaemonSetNameFromEngineImageName.
func engineImage(c Component) bool {
	return c.Kind == DaemonSetComponent && strings.HasPrefix(c.Name, "engine-image-")
}
