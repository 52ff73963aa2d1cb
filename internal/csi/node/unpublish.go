package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
)

// NodeUnpublishVolume unmounts the target and removes its directory.
func (s *Server) NodeUnpublishVolume(ctx context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("the request has no volume_id")
	}
	target := req.GetTargetPath()
	if err := checkPath("target_path", target, s.KubeletDir); err != nil {
		return nil, err
	}
	err := s.operations.do(ctx, target, "unmounting", s.Timeouts.Grace, func(ctx context.Context) error {
		real, err := resolve(target)
		if err == nil {
			s.leaving.Store(real, true)
			err = s.unmountAll(ctx, real)
		}
		if err == nil {
			s.leaving.Delete(real)
			err = removeTarget(real)
		}
		if _, ok := status.FromError(err); err != nil && !ok {
			return status.Error(codeOf(err), err.Error())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// maxStacked bounds how often a target is unmounted: a driver that was killed, or another one, may have mounted twice.
const maxStacked = 8

// unmountAll unmounts all NFS mounts on the target.
func (s *Server) unmountAll(ctx context.Context, target string) error {
	for range maxStacked {
		have, mounted, err := mounts.At(s.System, target)
		if err != nil || !mounted {
			return err
		}
		if !have.IsNFS() {
			return foreign(target, have)
		}
		s.Log.Info("Unmounting a share", "source", have.Source, "target", target)
		if err := s.unmount(ctx, target, have); err != nil {
			// umount(8) may have detached the mount before it waited for the server.
			if now, mounted, again := mounts.At(s.System, target); again != nil || mounted && now.ID == have.ID {
				return errors.Join(err, again)
			}
		}
	}
	return fmt.Errorf("%s is still mounted after %d times umount: see what mounts it with: grep %s /proc/self/mountinfo", target, maxStacked, target)
}

// pauses are the delays before each run of umount(8): killed processes and aborted requests release the mount with a
// delay.
var (
	pauses       = []time.Duration{0, 200 * time.Millisecond}
	forcedPauses = []time.Duration{0, 200 * time.Millisecond, time.Second}
)

// unmount tries umount, and umount -f if the only obstacle is a silent server. It is never lazy: a hidden mount may still
// write after the volume counts as detached.
func (s *Server) unmount(ctx context.Context, target string, have mounts.Mount) error {
	err := s.umount(ctx, target, false, pauses)
	if err == nil || errors.Is(err, mounts.ErrNotMounted) {
		return nil
	}
	byHand := fmt.Sprintf("find what uses it with: fuser -vm %s", target)
	probe, cancel := context.WithTimeout(ctx, s.Timeouts.Probe)
	defer cancel()
	if _, silent := s.System.Statfs(probe, target); silent == nil {
		return fmt.Errorf("%w; the server answers, so something uses the mount or is still written to it: %s", err, byHand)
	}
	list, unread := s.System.Mounts()
	if unread != nil {
		return errors.Join(err, unread)
	}
	used := slices.DeleteFunc(slices.Clone(list), func(m mounts.Mount) bool { _, leaves := s.leaving.Load(m.Target); return leaves })
	if other, shares := mounts.Shares(used, have); shares {
		return fmt.Errorf("%w; the server does not answer, and forcing would fail the requests of %s, which shares the connection: %s", err, other.Target, byHand)
	}
	s.Log.Warn("The server does not answer, and the mount is forced off", "target", target, "source", have.Source, "error", err)
	if err := s.umount(ctx, target, true, forcedPauses); err != nil && !errors.Is(err, mounts.ErrNotMounted) {
		return fmt.Errorf("%w; %s; as the last way, unmount it by hand with: umount -l %s", err, byHand, target)
	}
	return nil
}

// umount runs umount(8) until it succeeds, once after each pause.
func (s *Server) umount(ctx context.Context, target string, force bool, pauses []time.Duration) (err error) {
	for _, pause := range pauses {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(err, mounts.ErrTimeout, ctx.Err())
		}
		limited, cancel := context.WithTimeout(ctx, s.Timeouts.Unmount)
		err = s.System.Unmount(limited, target, force)
		cancel()
		if err == nil || errors.Is(err, mounts.ErrNotMounted) || errors.Is(err, mounts.ErrTimeout) {
			return err
		}
	}
	return err
}

// removeTarget removes the directory if it is empty.
func removeTarget(target string) error {
	err := syscall.Rmdir(target)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTEMPTY):
		return fmt.Errorf("%s is not mounted and not empty: files were written to the node's own disk; look at them and remove them", target)
	}
	return fmt.Errorf("removing the target: %w", &os.PathError{Op: "rmdir", Path: target, Err: err})
}

// codeOf is the gRPC code for an operating system error.
func codeOf(err error) codes.Code {
	if errors.Is(err, mounts.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	return codes.Internal
}

// mountError gives a failure of mount(8) its code, and says what to do. The kubelet
// takes NotFound, InvalidArgument, PermissionDenied and Internal as "not mounted",
// DeadlineExceeded and Unavailable as "may be mounted": it unpublishes those.
func mountError(r *request, err error) error {
	code, advice := codes.Internal, ""
	switch {
	case errors.Is(err, mounts.ErrTimeout):
		code, advice = codes.DeadlineExceeded, "; is the server reachable from this node?"
	case errors.Is(err, mounts.ErrUnreachable):
		code, advice = codes.Unavailable, "; is the server reachable from this node?"
	case errors.Is(err, mounts.ErrDenied):
		code, advice = codes.PermissionDenied, "; does the server export the share to this node?"
	case errors.Is(err, mounts.ErrNoLocks), errors.Is(err, mounts.ErrNoKey), errors.Is(err, mounts.ErrNoNFS):
		code = codes.FailedPrecondition
	case errors.Is(err, mounts.ErrInvalid):
		code, advice = codes.InvalidArgument, fmt.Sprintf("; check the mount options %q", r.options)
	case errors.Is(err, mounts.ErrNoExport), errors.Is(err, mounts.ErrDead):
		code, advice = codes.NotFound, "; does the server export it, and does the sub-directory exist?"
	}
	if refused := code == codes.PermissionDenied || code == codes.InvalidArgument; refused && slices.ContainsFunc(r.options, isKerberos) {
		advice += "; with Kerberos, rpc.gssd must run on the node and have a key" // without it, the kernel answers EINVAL or EACCES
	}
	return status.Errorf(code, "mounting %s: %s%s", r.source, err, advice)
}

func isKerberos(option string) bool {
	return strings.HasPrefix(option, "sec=krb5")
}
