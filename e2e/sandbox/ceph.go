package sandbox

import (
	"context"

	"github.com/fairlead-io/fairlead/internal/fence/profiles"
)

// SeedCeph starts csi-addons and a driver of Ceph that can fence node-1 and node-2, and adds a database on a volume of
// Ceph. RunKubelets has to run.
func (s *Sandbox) SeedCeph(ctx context.Context) error {
	namespace := profiles.RookCeph().Namespace
	if err := s.createNamespace(ctx, namespace); err != nil {
		return err
	}
	driver := CSIAddonsDriver{
		Name: namespace + ".rbd.csi.ceph.com", ClusterID: namespace, Client: "a815fe8e-eabd-4e87-a6e8-78cebfb67d08", ControllerNode: "node-3",
		Nodes: map[string][]string{"node-1": {"192.168.50.1/32"}, "node-2": {"192.168.50.2/32"}},
	}
	if _, err := s.StartCSIAddons(ctx, CSIAddonsOptions{Drivers: []CSIAddonsDriver{driver}}); err != nil {
		return err
	}
	return s.applySeed(ctx, "ceph")
}
