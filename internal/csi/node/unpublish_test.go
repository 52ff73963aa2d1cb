package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	mount "k8s.io/mount-utils"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
	"github.com/fairlead-io/fairlead/internal/csi/mounts/fakemounts"
)

func TestUnpublishKeepsFilesOfTheNode(t *testing.T) {
	b := newBed(t)
	b.must(os.Mkdir(b.target("mount"), 0o750))
	b.must(os.WriteFile(filepath.Join(b.target("mount"), "file"), nil, 0o600))
	b.fails(b.unpublish(), codes.Internal, "not empty")
	if !exists(filepath.Join(b.target("mount"), "file")) {
		t.Error("the file is gone")
	}
}

func TestUnpublishRefusesInvalidRequests(t *testing.T) {
	b := newBed(t)
	for text, req := range map[string]*csi.NodeUnpublishVolumeRequest{
		"no volume_id":   {TargetPath: b.target("mount")},
		"no target_path": {VolumeId: "v"},
		"not below":      {VolumeId: "v", TargetPath: "/etc"},
	} {
		_, err := b.NodeUnpublishVolume(context.Background(), req)
		b.fails(err, codes.InvalidArgument, text)
	}
}

func TestUnpublishTakesAllStackedMounts(t *testing.T) {
	b := newBed(t)
	b.must(os.Mkdir(b.target("mount"), 0o750))
	point := mount.MountPoint{Device: "10.0.0.1:/exports", Path: b.target("mount"), Type: "nfs4"}
	b.system = fakemounts.New(point, point)
	b.System = b.system
	b.must(b.unpublish())
	b.mounted(false)
}

func TestStatsTellUsageAndCondition(t *testing.T) {
	b := newBed(t)
	stats := func(volume, path string) (*csi.NodeGetVolumeStatsResponse, error) {
		return b.NodeGetVolumeStats(context.Background(), &csi.NodeGetVolumeStatsRequest{VolumeId: volume, VolumePath: path})
	}
	for _, c := range []struct {
		volume, path string
		code         codes.Code
	}{{"", b.target("mount"), codes.InvalidArgument}, {"v", "", codes.InvalidArgument}, {"v", b.target("mount"), codes.NotFound}} {
		_, err := stats(c.volume, c.path)
		b.fails(err, c.code, "")
	}
	b.must(b.publish())
	got, err := stats("v", b.target("mount"))
	b.must(err)
	if got.GetVolumeCondition().GetAbnormal() || len(got.GetUsage()) != 2 || got.GetUsage()[0].GetUsed() != 40 || got.GetUsage()[0].GetAvailable() != 50 || got.GetUsage()[1].GetUsed() != 6 {
		t.Errorf("%v", got)
	}
	for text, fault := range map[string]func(context.Context, string) error{
		"has not answered": func(ctx context.Context, _ string) error { return fakemounts.Hang(ctx) },
		"delete the pod":   func(context.Context, string) error { return mounts.ErrDead },
		"input/output":     func(context.Context, string) error { return syscall.EIO },
	} {
		b.system.OnStatfs = fault
		got, err := stats("v", b.target("mount"))
		b.must(err)
		if c := got.GetVolumeCondition(); !c.GetAbnormal() || !strings.Contains(c.GetMessage(), text) || len(got.GetUsage()) != 0 {
			t.Errorf("%s: %v", text, got)
		}
	}
}
