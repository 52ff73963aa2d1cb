package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
)

// Timeouts of operations. The kubelet waits two minutes for a call (csiTimeout in
// pkg/volume/csi/csi_plugin.go of Kubernetes 1.37).
type Timeouts struct {
	// Mount and Unmount are for one run of mount(8) or umount(8).
	Mount, Unmount time.Duration
	// Stat is how long a server may take to report usage or to set a mode.
	Stat time.Duration
	// Probe is how long the check of an existing mount may take.
	Probe time.Duration
	// Grace is how long a call waits, after its deadline, for an operation that was killed.
	Grace time.Duration
}

// DefaultTimeouts fit the kubelet's two minutes.
var DefaultTimeouts = Timeouts{Mount: 90 * time.Second, Unmount: 20 * time.Second, Stat: 10 * time.Second, Probe: 2 * time.Second, Grace: 5 * time.Second}

// Server is a csi.NodeServer. RPCs that it does not advertise are Unimplemented.
type Server struct {
	csi.UnimplementedNodeServer
	Driver   string
	NodeName string
	System   mounts.System
	Timeouts Timeouts
	// KubeletDir is the directory below which targets must be; empty: anywhere.
	KubeletDir string
	// PageSize in bytes; the kernel keeps read-ahead in whole pages.
	PageSize int
	Log      *slog.Logger

	operations operations
	// leaving are the targets that the kubelet unmounts: no pod uses them any more.
	leaving sync.Map
}

// Register adds the server to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { csi.RegisterNodeServer(r, s) }

// NodeGetCapabilities lists the RPCs and features of the node plugin.
func (s *Server) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	resp := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, csi.NodeServiceCapability_RPC_VOLUME_CONDITION} {
		resp.Capabilities = append(resp.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return resp, nil
}

// NodeGetInfo names the node as Kubernetes does. It names no zone: the attacher reads that from the Node, and volumes have none.
func (s *Server) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.NodeName}, nil
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}
