// Package controller answers the Controller RPCs of the CSI spec for those who run the
// external attacher. It asks the same Publisher as Fairlead's own attacher.
package controller

import (
	"context"
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	fairleadcsi "github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/csi/capability"
)

// Server is a csi.ControllerServer. RPCs that it does not advertise are Unimplemented.
type Server struct {
	csi.UnimplementedControllerServer
	Driver    string
	Publisher fairleadcsi.Publisher
}

// Register adds the server to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { csi.RegisterControllerServer(r, s) }

// ControllerGetCapabilities lists what works: attaching and detaching. Volumes are not provisioned.
func (s *Server) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{
		Type: &csi.ControllerServiceCapability_Rpc{
			Rpc: &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME},
		},
	}}}, nil
}

// ControllerPublishVolume assigns a server to the node.
func (s *Server) ControllerPublishVolume(ctx context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	switch {
	case req.GetVolumeId() == "":
		return nil, missing("volume_id")
	case req.GetNodeId() == "":
		return nil, missing("node_id")
	}
	if err := capability.Check(req.GetVolumeCapability()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	publish, err := s.Publisher.Publish(ctx, s.Driver, req.GetVolumeId(), req.GetNodeId())
	if err != nil {
		return nil, withCode(ctx, err)
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: publish}, nil
}

// ControllerUnpublishVolume ends the assignment for the volume; without a node, on all
// nodes (the GKE driver refuses that: lbcontroller.go).
func (s *Server) ControllerUnpublishVolume(ctx context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, missing("volume_id")
	}
	if err := s.Publisher.Unpublish(ctx, s.Driver, req.GetVolumeId(), req.GetNodeId()); err != nil && !errors.Is(err, fairleadcsi.ErrNotFound) {
		return nil, withCode(ctx, err)
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

// ValidateVolumeCapabilities confirms the capabilities that a share has.
func (s *Server) ValidateVolumeCapabilities(ctx context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, missing("volume_id")
	}
	if len(req.GetVolumeCapabilities()) == 0 {
		return nil, missing("volume_capabilities")
	}
	if finder, ok := s.Publisher.(fairleadcsi.VolumeFinder); ok {
		found, err := finder.HasVolume(ctx, s.Driver, req.GetVolumeId())
		if err != nil {
			return nil, withCode(ctx, err)
		}
		if !found {
			return nil, status.Errorf(codes.NotFound, "no PersistentVolume of driver %s has the volumeHandle %q", s.Driver, req.GetVolumeId())
		}
	}
	for _, c := range req.GetVolumeCapabilities() {
		err := capability.Check(c)
		if errors.As(err, &capability.MissingError{}) {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		if err != nil {
			return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
		}
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.GetVolumeContext(), VolumeCapabilities: req.GetVolumeCapabilities(), Parameters: req.GetParameters(),
		MutableParameters: req.GetMutableParameters(),
	}}, nil
}

func missing(field string) error {
	return status.Error(codes.InvalidArgument, capability.MissingError{Field: field}.Error())
}

// withCode gives the error of a Publisher its code of the CSI spec.
func withCode(ctx context.Context, err error) error {
	code := codes.Internal
	switch {
	case errors.Is(err, fairleadcsi.ErrNotFound):
		code = codes.NotFound
	case errors.Is(err, fairleadcsi.ErrInvalid):
		code = codes.InvalidArgument
	case errors.Is(err, fairleadcsi.ErrIncompatible):
		code = codes.AlreadyExists
	case errors.Is(err, fairleadcsi.ErrBusy):
		code = codes.Aborted
	case errors.Is(err, fairleadcsi.ErrUnavailable):
		code = codes.Unavailable
	}
	if code == codes.Internal && ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(code, err.Error())
}
