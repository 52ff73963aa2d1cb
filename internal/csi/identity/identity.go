// Package identity answers the Identity RPCs of the CSI spec.
package identity

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Server names the driver. It is a csi.IdentityServer.
type Server struct {
	csi.UnimplementedIdentityServer
	Driver, Version string
}

// Register adds the server to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { csi.RegisterIdentityServer(r, s) }

// GetPluginInfo names the driver.
func (s *Server) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.Driver, VendorVersion: s.Version}, nil
}

// GetPluginCapabilities names no service: the driver has no Controller RPCs, since Fairlead's attacher writes
// VolumeAttachments itself.
func (s *Server) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

// Probe returns ready at once: the driver needs no preparation.
func (s *Server) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
