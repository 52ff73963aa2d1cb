package sandbox

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

//go:embed seed/*.yaml
var seeds embed.FS

// Volumes of the seed.
const (
	// SharedVolume is RWX, in use by pod default/web-0 on node-2.
	SharedVolume = "pvc-117d3553"
	// IdleVolume is RWX and detached.
	IdleVolume = "pvc-5e2a88c1"
	// OwnVolume is RWO, in use by pod default/db-0 on node-1.
	OwnVolume = "pvc-9c41d7aa"
)

// Longhorn returns the stand-in for longhorn-manager.
func (s *Sandbox) Longhorn() standin.Longhorn {
	return standin.NewLonghorn(s.longhornClient, s.release, s.Out)
}

// UpgradeLonghorn makes Longhorn a later version.
func (s *Sandbox) UpgradeLonghorn(ctx context.Context, version string) error {
	later, err := release.Find(version)
	if err != nil {
		return err
	}
	s.release = later
	return s.Longhorn().Upgrade(ctx)
}

// SeedLonghorn leaves in the API what an installation of Longhorn does,
// with two networks, and waits until the CSI plugin runs on every node.
func (s *Sandbox) SeedLonghorn(ctx context.Context) error {
	for _, name := range []string{"longhorn", "settings", "networks"} {
		if err := s.applySeed(ctx, name); err != nil {
			return err
		}
	}
	if err := s.Longhorn().SeedSettings(ctx); err != nil {
		return err
	}
	return s.WaitClients(ctx)
}

// SeedWorkloads adds volumes and the workloads that use them.
func (s *Sandbox) SeedWorkloads(ctx context.Context) error {
	lh := s.Longhorn()
	for _, v := range []standin.Volume{
		{Name: SharedVolume, Shared: true, Claim: "web-data"},
		{Name: IdleVolume, Shared: true},
		{Name: OwnVolume, Claim: "db-data"},
	} {
		if err := lh.CreateVolume(ctx, v); err != nil {
			return err
		}
	}
	if err := s.applySeed(ctx, "workloads"); err != nil {
		return err
	}
	if err := s.WaitAttached(ctx, SharedVolume, true); err != nil {
		return err
	}
	if err := lh.Attach(ctx, SharedVolume, "node-2"); err != nil {
		return err
	}
	return lh.Attach(ctx, OwnVolume, "node-1")
}

func (s *Sandbox) applySeed(ctx context.Context, name string) error {
	data, err := seeds.ReadFile("seed/" + name + ".yaml")
	if err != nil {
		return fmt.Errorf("reading the seed: %w", err)
	}
	if out, err := s.Kubectl(ctx, string(data), "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("seeding %s: %w\n%s", name, err, out)
	}
	return nil
}

// WaitClients waits until a CSI plugin pod is Ready on every node.
func (s *Sandbox) WaitClients(ctx context.Context) error {
	return eventually.Until(ctx, "the CSI plugin", time.Minute, func() error {
		var ds appsv1.DaemonSet
		err := s.Client.Get(ctx, client.ObjectKey{Namespace: longhorn.DefaultNames().Namespace, Name: longhorn.DefaultNames().ClientDaemonSet}, &ds)
		if err == nil && (ds.Status.ObservedGeneration < ds.Generation || int(ds.Status.NumberReady) != len(s.State.Nodes)) {
			err = fmt.Errorf("%d pods are Ready", ds.Status.NumberReady)
		}
		return err
	})
}

// WaitAttached waits until Kubernetes has, or has no more, an attachment of the volume.
func (s *Sandbox) WaitAttached(ctx context.Context, volume string, attached bool) error {
	return eventually.Until(ctx, "Kubernetes", time.Minute, func() error {
		var list storagev1.VolumeAttachmentList
		err := s.Client.List(ctx, &list)
		found := slices.ContainsFunc(list.Items, func(va storagev1.VolumeAttachment) bool {
			return ptr.Deref(va.Spec.Source.PersistentVolumeName, "") == volume
		})
		if err == nil && found != attached {
			err = fmt.Errorf("volume %s has an attachment: %v", volume, found)
		}
		return err
	})
}
