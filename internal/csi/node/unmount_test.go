package node

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
	"github.com/fairlead-io/fairlead/internal/csi/mounts/fakemounts"
)

const mounting = "mount 10.0.0.1:/exports [vers=3 hard]"

func silent(ctx context.Context, _ string) error { return fakemounts.Hang(ctx) }

// The GKE driver begins with a stat that has no deadline (CleanupMountWithForce).
func TestHungUnmountIsForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.must(b.publish())
		b.system.OnStatfs = silent
		b.system.OnUnmount = func(ctx context.Context, _ string, force bool) error {
			if !force {
				return fakemounts.Hang(ctx)
			}
			return nil
		}
		b.must(b.unpublish())
		b.did(mounting, "umount force=false", "umount force=true")
		b.mounted(false)
	})
}

// The first umount -f aborts the requests that keep the mount busy; a later one takes it off.
func TestForceIsRepeatedUntilRequestsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.must(b.publish())
		b.system.OnStatfs = silent
		left := 4
		b.system.OnUnmount = func(context.Context, string, bool) error {
			if left--; left > 0 {
				return syscall.EBUSY
			}
			return nil
		}
		b.must(b.unpublish())
		b.did(mounting, "umount force=false", "umount force=false", "umount force=true", "umount force=true")
	})
}

// Forcing would fail the requests of whoever uses the mount.
func TestBusyMountOfLivingServerIsNotForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.must(b.publish())
		b.system.OnUnmount = func(context.Context, string, bool) error { return syscall.EBUSY }
		b.fails(b.unpublish(), codes.Internal, "fuser -vm")
		// The kernel first writes dirty pages to the server, which may take longer.
		b.system.OnUnmount = func(ctx context.Context, _ string, _ bool) error { return fakemounts.Hang(ctx) }
		b.fails(b.unpublish(), codes.DeadlineExceeded, "fuser -vm")
		b.did(mounting, "umount force=false", "umount force=false", "umount force=false")
		b.mounted(true)
	})
}

// Forcing aborts the requests of all mounts that share the superblock.
func TestMountSharedWithAnotherPodIsNotForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.system.OneSuperblock = true
		b.must(b.publish())
		b.must(b.publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = b.target("other-pod") }))
		b.system.OnStatfs = silent
		b.system.OnUnmount = func(context.Context, string, bool) error { return syscall.EBUSY }
		b.fails(b.unpublish(), codes.Internal, "would fail the requests of "+b.target("other-pod"))
		b.did(mounting, mounting, "umount force=false", "umount force=false")
	})
}

func TestMountIsNeverUnmountedLazily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.must(b.publish())
		b.system.OnStatfs = silent
		b.system.OnUnmount = func(context.Context, string, bool) error { return syscall.EBUSY }
		b.fails(b.unpublish(), codes.Internal, "by hand with: umount -l")
		b.mounted(true)
	})
}

// umount(8) may take a mount off and then wait for the server.
func TestUnmountThatHangsAfterItsWorkIsSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.must(b.publish())
		b.system.OnUnmount = func(ctx context.Context, target string, force bool) error {
			b.system.OnUnmount = nil
			err := b.system.Unmount(ctx, target, force)
			b.system.OnUnmount = func(context.Context, string, bool) error { return mounts.ErrTimeout }
			return errors.Join(err, mounts.ErrTimeout)
		}
		b.must(b.unpublish())
		b.mounted(false)
	})
}
