package main

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/longhorn/types/pkg/generated/enginerpc"
	rpc "github.com/longhorn/types/pkg/generated/imrpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// proxy is how longhorn-manager asks engines (port 8501). It answers what an engine
// that was just started with its arguments would.
type proxy struct {
	rpc.UnimplementedProxyEngineServiceServer
	pods *pods
}

// arguments that an engine was started with.
func (p proxy) arguments(r *rpc.ProxyEngineRequest) ([]string, error) {
	p.pods.mu.Lock()
	defer p.pods.mu.Unlock()
	pod, err := p.pods.engine(r)
	if err != nil {
		return nil, err
	}
	return pod.instances[r.EngineName].Spec.ProcessInstanceSpec.GetArgs(), nil
}

func flagValue(args []string, name string) string {
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func (p proxy) VolumeGet(_ context.Context, r *rpc.ProxyEngineRequest) (*rpc.EngineVolumeGetProxyResponse, error) {
	args, err := p.arguments(r)
	if err != nil {
		return nil, err
	}
	size, _ := strconv.ParseInt(flagValue(args, "--size"), 10, 64)
	maxCount, _ := strconv.ParseInt(flagValue(args, "--snapshot-max-count"), 10, 32)
	maxSize, _ := strconv.ParseInt(flagValue(args, "--snapshot-max-size"), 10, 64)
	return &rpc.EngineVolumeGetProxyResponse{Volume: &enginerpc.Volume{
		Name: r.VolumeName, Size: size, Endpoint: "/dev/longhorn/" + r.VolumeName,
		Frontend: flagValue(args, "--frontend"), FrontendState: "up", SnapshotMaxCount: int32(maxCount), SnapshotMaxSize: maxSize,
		UnmapMarkSnapChainRemoved: slices.Contains(args, "--unmap-mark-snap-chain-removed"),
	}}, nil
}

func (proxy) SnapshotList(context.Context, *rpc.ProxyEngineRequest) (*rpc.EngineSnapshotListProxyResponse, error) {
	return &rpc.EngineSnapshotListProxyResponse{Disks: map[string]*rpc.EngineSnapshotDiskInfo{
		"volume-head": {Name: "volume-head", Created: time.Now().UTC().Format(time.RFC3339), Size: "0", Labels: map[string]string{}},
	}}, nil
}

func (proxy) ReplicaRebuildingStatus(context.Context, *rpc.ProxyEngineRequest) (*rpc.EngineReplicaRebuildStatusProxyResponse, error) {
	return &rpc.EngineReplicaRebuildStatusProxyResponse{}, nil
}

func (proxy) SnapshotPurgeStatus(context.Context, *rpc.ProxyEngineRequest) (*rpc.EngineSnapshotPurgeStatusProxyResponse, error) {
	return &rpc.EngineSnapshotPurgeStatusProxyResponse{}, nil
}

func (proxy) BackupRestoreStatus(context.Context, *rpc.ProxyEngineRequest) (*rpc.EngineBackupRestoreStatusProxyResponse, error) {
	return &rpc.EngineBackupRestoreStatusProxyResponse{}, nil
}

func (proxy) SnapshotCloneStatus(context.Context, *rpc.ProxyEngineRequest) (*rpc.EngineSnapshotCloneStatusProxyResponse, error) {
	return &rpc.EngineSnapshotCloneStatusProxyResponse{}, nil
}

func (proxy) MetricsGet(context.Context, *rpc.ProxyEngineRequest) (*rpc.EngineMetricsGetProxyResponse, error) {
	return &rpc.EngineMetricsGetProxyResponse{Metrics: &enginerpc.Metrics{}}, nil
}

func (proxy) VolumeUnmapMarkSnapChainRemovedSet(context.Context, *rpc.EngineVolumeUnmapMarkSnapChainRemovedSetRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (proxy) VolumeSnapshotMaxCountSet(context.Context, *rpc.EngineVolumeSnapshotMaxCountSetRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (proxy) VolumeSnapshotMaxSizeSet(context.Context, *rpc.EngineVolumeSnapshotMaxSizeSetRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (proxy) VolumeFrontendStart(context.Context, *rpc.EngineVolumeFrontendStartRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (proxy) VolumeFrontendShutdown(context.Context, *rpc.ProxyEngineRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (proxy) RemountReadOnlyVolume(context.Context, *rpc.RemountVolumeRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (proxy) SnapshotPurge(context.Context, *rpc.EngineSnapshotPurgeRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (proxy) CleanupBackupMountPoints(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}
