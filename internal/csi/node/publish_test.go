package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	mount "k8s.io/mount-utils"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
	"github.com/fairlead-io/fairlead/internal/csi/mounts/fakemounts"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestPublishMountsAndUnpublishCleansUp(t *testing.T) {
	b := newBed(t)
	b.must(b.publish(address("[fd00::1]:2050"), attribute("SubDir", "${pvc.metadata.name}/x"), attribute("csi.storage.k8s.io/pvc/name", "data"),
		attribute("mountOptions", "nolock,nconnect=4"), attribute("mountPermissions", "0770"), flags("vers=3", "read_ahead_kb=15361")))
	b.did("mount [fd00::1]:/exports/data/x [vers=3 nolock nconnect=4 port=2050]", "read-ahead 15361", "chmod 770")
	info, err := os.Stat(b.target("mount"))
	b.must(err)
	must.Equal(t, info.Mode().Perm(), 0o750, "mode %o", info.Mode())
	b.must(b.unpublish())
	b.must(b.unpublish())
	b.mounted(false)
	if exists(b.target("mount")) {
		t.Error("the target is still there")
	}
}

func TestRepublishIsIdempotent(t *testing.T) {
	type change = func(*csi.NodePublishVolumeRequest)
	for want, changes := range map[string][]change{
		"mount 10.0.0.1:/exports [vers=4.1 noexec]; read-ahead 1024": {flags("vers=4.1", "read_ahead_kb=1024", "noexec")},
		"mount 10.0.0.1:/exports [vers=3 port=2049 ro]":              {flags("rw", "vers=3"), readOnly},
		mounting: {attribute("SHARE", "/exports")}, // of two spellings: admission takes it
	} {
		b := newBed(t)
		for range 3 {
			b.must(b.publish(changes...))
		}
		b.did(want)
	}
}

// The GKE driver calls any mount point a success (nodeserver.go: NodePublishVolume).
func TestRepublishDetectsAnotherMount(t *testing.T) {
	for name, change := range map[string]func(*csi.NodePublishVolumeRequest){
		"server": address("10.0.0.2"), "share": attribute("share", "/other"), "subdir": attribute("subdir", "x"),
		"read-only": readOnly,
	} {
		b := newBed(t)
		b.must(b.publish())
		b.fails(b.publish(change), codes.AlreadyExists, "delete the pod")
		b.mounted(true)
		b.did(mounting)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// The kubelet publishes the volumes of running pods again after its restart.
func TestRepublishKeepsTheMountWithNewOptions(t *testing.T) {
	b := newBed(t)
	b.must(b.publish())
	b.must(b.publish(flags("vers=4.1", "soft", "noexec")))
	b.did(mounting)
}

func TestForeignMountIsRefused(t *testing.T) {
	b := newBed(t)
	b.must(os.Mkdir(b.target("mount"), 0o750))
	b.System = fakemounts.New(mount.MountPoint{Device: "/dev/sda1", Path: b.target("mount"), Type: "ext4"})
	b.fails(b.publish(), codes.FailedPrecondition, "umount "+b.target("mount"))
	b.fails(b.unpublish(), codes.FailedPrecondition, "mounted by something else (/dev/sda1 of type ext4)")
}

// The GKE driver leaves the mount, and the retry calls it a success (nodeserver.go: setReadAhead).
func TestFailedReadAheadUndoesTheMount(t *testing.T) {
	b := newBed(t)
	b.system.OnReadAhead = func(int) (int, error) { return 0, syscall.EROFS }
	for range 2 {
		b.fails(b.publish(flags("read_ahead_kb=8")), codes.Internal, "read_ahead_kb")
		b.mounted(false)
	}
	b.system.OnReadAhead = func(int) (int, error) { return 64, nil }
	b.fails(b.publish(flags("read_ahead_kb=8")), codes.Internal, "the kernel has 64")
	b.mounted(false)
	b.system.OnReadAhead = nil
	b.must(b.publish(flags("read_ahead_kb=8")))
	b.mounted(true)
}

func TestFailedModeUndoesTheMount(t *testing.T) {
	b := newBed(t)
	b.system.OnChmod = func(context.Context, string, uint32) error { return syscall.EPERM }
	b.fails(b.publish(attribute("mountPermissions", "777")), codes.Internal, "squashes root")
	b.mounted(false)
	b.must(b.publish(attribute("mountPermissions", "0")))
	b.must(b.unpublish())
	b.must(b.publish(attribute("mountPermissions", "777"), readOnly)) // nothing can be changed there
}

// After a code that it takes as final, the kubelet would never unmount the share.
func TestMountThatRemainsIsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.system.OnReadAhead = func(int) (int, error) { return 0, syscall.EROFS }
		b.system.OnUnmount = func(context.Context, string, bool) error { return syscall.EBUSY }
		b.fails(b.publish(flags("read_ahead_kb=8")), codes.Unavailable, "fuser -vm")
		b.fails(b.publish(flags("read_ahead_kb=8")), codes.Unavailable, "read_ahead_kb")
		b.system.OnStatfs = func(context.Context, string) error { return mounts.ErrDead }
		b.fails(b.publish(), codes.Unavailable, "unmounting a dead mount")
		b.mounted(true)
		b.system.OnUnmount, b.system.OnStatfs = nil, nil
		b.must(b.unpublish())
		b.mounted(false)
	})
}

// A process that was killed between mount and read-ahead left this.
func TestRepublishSetsMissingReadAhead(t *testing.T) {
	b := newBed(t)
	b.must(b.publish())
	b.must(b.publish(flags("vers=3", "hard", "read_ahead_kb=512")))
	b.did(mounting, "read-ahead 512")
}

// The GKE driver answers Internal to every retry (nodeserver.go: IsLikelyNotMountPoint).
func TestDeadMountIsReplaced(t *testing.T) {
	b := newBed(t)
	b.must(b.publish(address("10.0.0.9")))
	b.system.OnStatfs = func(context.Context, string) error { return fmt.Errorf("stat: %w", mounts.ErrDead) }
	b.must(b.publish())
	b.did("mount 10.0.0.9:/exports [vers=3 hard port=2049]", "umount force=false", mounting)
	list, _ := b.system.Mounts()
	if len(list) != 1 || list[0].Source != "10.0.0.1:/exports" {
		t.Errorf("%v", list)
	}
}

func TestMountOfSilentServerIsKept(t *testing.T) {
	answers := func(err error) func(context.Context, string) error {
		return func(context.Context, string) error { return err }
	}
	for name, fault := range map[string]func(context.Context, string) error{"hangs": silent, "soft mount": answers(syscall.EIO), "root squashed": answers(syscall.EACCES)} {
		b := newBed(t)
		b.must(b.publish())
		b.system.OnStatfs = fault
		if err := b.publish(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b.did(mounting)
	}
}

func TestFailureOfMountHasItsCode(t *testing.T) {
	for kind, code := range map[error]codes.Code{
		mounts.ErrDenied: codes.PermissionDenied, mounts.ErrInvalid: codes.InvalidArgument, mounts.ErrNoExport: codes.NotFound,
		mounts.ErrNoLocks: codes.FailedPrecondition, mounts.ErrNoKey: codes.FailedPrecondition, mounts.ErrNoNFS: codes.FailedPrecondition,
		mounts.ErrUnreachable: codes.Unavailable, mounts.ErrTimeout: codes.DeadlineExceeded, errors.New("other"): codes.Internal,
	} {
		b := newBed(t)
		b.system.OnMount = func(context.Context, string, string, []string) error { return kind }
		b.fails(b.publish(), code, "10.0.0.1:/exports")
		b.must(b.unpublish())
	}
}

// The kernel's answers name neither Kerberos nor its daemon.
func TestRefusalWithKerberosNamesItsDaemon(t *testing.T) {
	const advice = "rpc.gssd must run on the node"
	for kind, code := range map[error]codes.Code{mounts.ErrDenied: codes.PermissionDenied, mounts.ErrInvalid: codes.InvalidArgument} {
		t.Run(code.String(), func(t *testing.T) {
			b := newBed(t)
			b.system.OnMount = func(context.Context, string, string, []string) error { return kind }
			b.fails(b.publish(flags("sec=krb5p")), code, advice)
			must.True(t, !strings.Contains(b.publish(flags("sec=sys")).Error(), advice), "the advice is also for sec=sys")
		})
	}
}

// mount(8) follows the link, and mountinfo names what it points to: each retry would add a mount.
func TestTargetThatIsASymbolicLinkIsRefused(t *testing.T) {
	b := newBed(t)
	b.must(os.Mkdir(b.target("real"), 0o750))
	b.must(os.Symlink(b.target("real"), b.target("mount")))
	b.fails(b.publish(), codes.Internal, "is a symbolic link")
	b.did()
}

func TestTargetBelowSymbolicLinkIsFound(t *testing.T) {
	b := newBed(t)
	b.must(os.Mkdir(b.target("real"), 0o750))
	b.must(os.Symlink(b.target("real"), b.target("link")))
	below := func(r *csi.NodePublishVolumeRequest) { r.TargetPath = b.target("link/mount") }
	b.must(b.publish(below))
	b.must(b.publish(below))
	b.did(mounting)
}
