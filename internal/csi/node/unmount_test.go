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

const mounting = "mount 10.0.0.1:/exports [vers=3 hard port=2049]"

func silent(ctx context.Context, _ string) error { return fakemounts.Hang(ctx) }

func busy(context.Context, string, bool) error { return syscall.EBUSY }

// inBubble runs f in fake time with a volume that is mounted.
func inBubble(t *testing.T, f func(b *bed)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.must(b.publish())
		f(b)
	})
}

func TestUnmountIsForcedOnlyIfTheServerIsSilent(t *testing.T) {
	const plain, force = "umount force=false", "umount force=true"
	hang := func(ctx context.Context, _ string, _ bool) error { return fakemounts.Hang(ctx) }
	calls := 0
	for name, c := range map[string]struct {
		statfs  func(context.Context, string) error
		unmount func(context.Context, string, bool) error
		code    codes.Code // OK: the volume is unmounted
		text    string
		did     []string
	}{
		// The GKE driver begins with a stat that has no deadline (CleanupMountWithForce).
		"plain unmount hangs": {silent, func(ctx context.Context, _ string, force bool) error {
			if !force {
				return fakemounts.Hang(ctx)
			}
			return nil
		}, codes.OK, "", []string{plain, force}},
		// The first umount -f aborts the requests that keep the mount busy; a later one takes it off.
		"busy with requests": {silent, func(context.Context, string, bool) error {
			if calls++; calls < 4 {
				return syscall.EBUSY
			}
			return nil
		}, codes.OK, "", []string{plain, plain, force, force}},
		// Forcing would fail the requests of whoever uses the mount.
		"server answers, busy": {nil, busy, codes.Internal, "fuser -vm", []string{plain, plain}},
		// The kernel first writes dirty pages to the server, which may take longer.
		"server answers, hangs": {nil, hang, codes.DeadlineExceeded, "fuser -vm", []string{plain}},
		"never lazily":          {silent, busy, codes.Internal, "by hand with: umount -l", []string{plain, plain, force, force, force}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.system.OnStatfs, b.system.OnUnmount = c.statfs, c.unmount
				err := b.unpublish()
				if c.code == codes.OK {
					b.must(err)
				} else {
					b.fails(err, c.code, c.text)
				}
				b.did(append([]string{mounting}, c.did...)...)
				b.mounted(c.code != codes.OK)
			})
		})
	}
}

// Forcing aborts the requests of all mounts that share the superblock.
func TestMountSharedWithAnotherPodIsNotForced(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.system.OneSuperblock = true
		b.must(b.publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = b.target("other-pod") }))
		b.system.OnStatfs, b.system.OnUnmount = silent, busy
		b.fails(b.unpublish(), codes.Internal, "would fail the requests of "+b.target("other-pod"))
		b.did(mounting, mounting, "umount force=false", "umount force=false")
	})
}

// Two deleted pods of one node share a dead connection: neither keeps the other one. A third, living pod still does.
func TestMountsThatBothLeaveAreForced(t *testing.T) {
	for _, living := range []bool{false, true} {
		inBubble(t, func(b *bed) {
			other := b.target("other-pod")
			b.system.OneSuperblock = true
			b.must(b.publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = other }))
			if living {
				b.must(b.publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = b.target("living-pod") }))
			}
			b.system.OnStatfs = silent
			b.system.OnUnmount = func(ctx context.Context, target string, force bool) error {
				if !force {
					return syscall.EBUSY
				}
				return nil
			}
			b.fails(b.unpublish(), codes.Internal, "would fail the requests of ")
			_, err := b.NodeUnpublishVolume(context.Background(), &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: other})
			if living {
				b.fails(err, codes.Internal, "would fail the requests of "+b.target("living-pod"))
				return
			}
			b.must(err)
			b.must(b.unpublish())
			b.mounted(false)
		})
	}
}

// umount(8) may take a mount off and then wait for the server.
func TestUnmountThatHangsAfterItsWorkIsSuccess(t *testing.T) {
	inBubble(t, func(b *bed) {
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
