package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
)

// NodeGetVolumeStats returns the share's usage and the mount's condition. Nothing
// is cached: the GKE driver caches by volume, and is wrong about a second path for ten minutes.
func (s *Server) NodeGetVolumeStats(ctx context.Context, req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("the request has no volume_id")
	}
	path := req.GetVolumePath()
	if path == "" {
		return nil, invalid("the request has no volume_path")
	}
	real, err := resolve(path)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	have, mounted, err := mounts.At(s.System, real)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if !mounted || !have.IsNFS() {
		return nil, status.Errorf(codes.NotFound, "no NFS share is mounted at %s", path)
	}
	limited, cancel := context.WithTimeout(ctx, s.Timeouts.Stat)
	defer cancel()
	usage, err := s.System.Statfs(limited, real)
	if err != nil {
		// The response has no usage. Kubelets up to 1.36 that read conditions accept that; from 1.37 on it is an error to them.
		return &csi.NodeGetVolumeStatsResponse{VolumeCondition: &csi.VolumeCondition{Abnormal: true, Message: s.abnormal(have, err)}}, nil
	}
	return &csi.NodeGetVolumeStatsResponse{
		Usage: []*csi.VolumeUsage{
			{Unit: csi.VolumeUsage_BYTES, Total: usage.Bytes, Available: usage.BytesAvailable, Used: usage.Bytes - usage.BytesFree},
			{Unit: csi.VolumeUsage_INODES, Total: usage.Inodes, Available: usage.InodesFree, Used: usage.Inodes - usage.InodesFree},
		},
		VolumeCondition: &csi.VolumeCondition{Message: have.Source + " answers"},
	}, nil
}

func (s *Server) abnormal(have mounts.Mount, err error) string {
	switch {
	case errors.Is(err, mounts.ErrTimeout):
		return fmt.Sprintf("%s has not answered for %s: look at the NFS server", have.Source, s.Timeouts.Stat)
	case errors.Is(err, mounts.ErrDead):
		return fmt.Sprintf("the mount of %s does not work any more: %s: delete the pod, so that the share is mounted again", have.Source, err)
	}
	return fmt.Sprintf("%s: %s", have.Source, err)
}
