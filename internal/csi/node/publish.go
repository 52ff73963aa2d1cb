package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
	"github.com/fairlead-io/fairlead/internal/nfs/options"
)

// targetMode is the mode of a directory to mount on. The GKE driver makes the directory
// with the mode of mountPermissions, 0 by default.
const targetMode = 0o750

// NodePublishVolume mounts the share at the target.
func (s *Server) NodePublishVolume(ctx context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	r, err := parse(s.Driver, s.KubeletDir, req)
	if err != nil {
		return nil, err
	}
	err = s.operations.do(ctx, r.target, "mounting", s.Timeouts.Grace, func(ctx context.Context) error { return s.publish(ctx, r) })
	if err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (s *Server) publish(ctx context.Context, r *request) error {
	real, err := resolve(r.target)
	if err != nil {
		return status.Errorf(codes.Internal, "%s: %s", r.target, err)
	}
	if info, err := os.Lstat(real); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return status.Errorf(codes.Internal, "%s is a symbolic link, which the kubelet never makes. mount would follow it, and the mount would not be found again: remove the link", r.target)
	}
	s.leaving.Delete(real)
	have, mounted, err := mounts.At(s.System, real)
	if err != nil {
		return uncertain(err)
	}
	if mounted {
		again, err := s.republish(ctx, r, real, have)
		if err != nil || !again {
			return err
		}
	}
	if err := os.MkdirAll(real, targetMode); err != nil {
		return status.Errorf(codes.Internal, "making the target: %s", err)
	}
	return s.mount(ctx, r, real)
}

// republish compares the existing mount at the target with the request. It returns true after it has unmounted a dead
// mount: the share is then mounted again.
func (s *Server) republish(ctx context.Context, r *request, real string, have mounts.Mount) (again bool, err error) {
	if !have.IsNFS() {
		return false, foreign(r.target, have)
	}
	probe, cancel := context.WithTimeout(ctx, s.Timeouts.Probe)
	defer cancel()
	// A silent server may answer again, so its mounts are kept.
	if _, err := s.System.Statfs(probe, real); errors.Is(err, mounts.ErrDead) {
		s.Log.Warn("The mount is dead and is replaced", "target", r.target, "source", have.Source, "error", err)
		if err := s.unmountAll(ctx, real); err != nil {
			return false, uncertain(fmt.Errorf("unmounting a dead mount: %w", err))
		}
		return true, nil
	}
	if text := difference(have, r); text != "" {
		return false, status.Errorf(codes.AlreadyExists, "%s is mounted already, but %s: delete the pod, so that the share is mounted again", r.target, text)
	}
	if err := s.finish(ctx, r, real, have); err != nil {
		return false, uncertain(err) // it may be in use, and is not unmounted
	}
	return false, nil
}

// mount mounts, and undoes the mount if the rest of the request cannot be fulfilled.
func (s *Server) mount(ctx context.Context, r *request, real string) error {
	limited, cancel := context.WithTimeout(ctx, s.Timeouts.Mount)
	defer cancel()
	if err := s.System.Mount(limited, r.source, real, r.options); err != nil {
		return mountError(r, err)
	}
	have, mounted, err := mounts.At(s.System, real)
	if err == nil && !mounted {
		err = status.Error(codes.Internal, "mount(8) reports success, and mountinfo does not show the mount")
	}
	if err == nil {
		err = s.finish(ctx, r, real, have)
	}
	if err == nil {
		s.Log.Info("Mounted a share", "source", r.source, "target", r.target, "options", r.options)
		return nil
	}
	if undo := s.unmountAll(context.WithoutCancel(ctx), real); undo != nil {
		return uncertain(fmt.Errorf("%s; unmounting again: %w", status.Convert(err).Message(), undo))
	}
	return err
}

// finish sets the read-ahead and the mode, which are no options of mount(8).
func (s *Server) finish(ctx context.Context, r *request, real string, have mounts.Mount) error {
	if r.readAheadKB != nil {
		if err := s.setReadAhead(have, *r.readAheadKB); err != nil {
			return status.Errorf(codes.Internal, "read_ahead_kb of %s: %s", r.source, err)
		}
	}
	if r.mode == 0 || r.readOnly {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, s.Timeouts.Stat)
	defer cancel()
	if err := s.System.Chmod(limited, real, r.mode); err != nil {
		return status.Errorf(codeOf(err), "setting mountPermissions %o of %s: %s; if the server squashes root, set the mode there and remove mountPermissions", r.mode, r.source, err)
	}
	return nil
}

func (s *Server) setReadAhead(m mounts.Mount, kb int) error {
	want := options.EffectiveReadAheadKB(kb, s.PageSize)
	if have, err := s.System.ReadAhead(m); err == nil && have == want {
		return nil
	}
	if err := s.System.SetReadAhead(m, kb); err != nil {
		return err
	}
	have, err := s.System.ReadAhead(m)
	if err == nil && have != want {
		err = fmt.Errorf("%d was written and the kernel has %d", kb, have)
	}
	return err
}

// difference names what makes a mount another one than the request asks for; empty: nothing. Mount options are not compared: the
// kubelet repeats calls for running pods after a restart, when the PersistentVolume may have new ones for later mounts.
func difference(have mounts.Mount, want *request) string {
	if have.Source != want.source {
		return fmt.Sprintf("its source is %s, not %s", have.Source, want.source)
	}
	if readOnly := slices.Contains(have.Options, "ro"); readOnly != want.readOnly {
		return fmt.Sprintf("read-only is %t, not %t", readOnly, want.readOnly)
	}
	return ""
}

// uncertain is an error with which the kubelet treats the share as possibly mounted, and unpublishes it if the pod is deleted. A
// final error would leak the mount (isFinalError in pkg/volume/csi/csi_client.go of Kubernetes 1.37).
func uncertain(err error) error {
	return status.Error(codes.Unavailable, status.Convert(err).Message())
}

func foreign(target string, have mounts.Mount) error {
	return status.Errorf(codes.FailedPrecondition, "%s is mounted by something else (%s of type %s): find out by what, and unmount it with: umount %s",
		target, have.Source, have.FsType, target)
}

// resolve returns the target as mountinfo shows it. Symbolic links are followed up to
// the target's parent: the target itself may hang.
func resolve(target string) (string, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(target))
	if errors.Is(err, fs.ErrNotExist) {
		return target, nil
	}
	if err != nil {
		return "", fmt.Errorf("finding the directory of the target: %w", err)
	}
	return filepath.Join(parent, filepath.Base(target)), nil
}
