package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	fairleadcsi "github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/csi/identity"
	"github.com/fairlead-io/fairlead/internal/csi/node"
)

// withController is the product's identity with the Controller RPCs below.
type withController struct{ identity.Server }

func (i *withController) Register(r grpc.ServiceRegistrar) { csi.RegisterIdentityServer(r, i) }

func (*withController) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}},
	}}}, nil
}

// volumes answers the Controller RPCs that csi-sanity needs to get volumes for the Node RPCs. One server has all volumes.
type volumes struct {
	csi.UnimplementedControllerServer
	mu     sync.Mutex
	byName map[string]*csi.Volume
	count  int
}

func (v *volumes) Register(r grpc.ServiceRegistrar) { csi.RegisterControllerServer(r, v) }

func (v *volumes) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	resp := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME} {
		resp.Capabilities = append(resp.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return resp, nil
}

func (v *volumes) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := check(req.GetName(), req.GetVolumeCapabilities()...); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	size, have := req.GetCapacityRange().GetRequiredBytes(), v.byName[req.GetName()]
	if have != nil && have.CapacityBytes != size {
		return nil, status.Error(codes.AlreadyExists, "the volume has another size")
	}
	if have == nil {
		v.count++
		id := fmt.Sprintf("volume-%d", v.count)
		have = &csi.Volume{VolumeId: id, CapacityBytes: size, VolumeContext: map[string]string{"share": "/exports", "subdir": id}}
		v.byName[req.GetName()] = have
	}
	return &csi.CreateVolumeResponse{Volume: have}, nil
}

func (v *volumes) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume_id")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, have := range v.byName {
		if have.VolumeId == req.GetVolumeId() {
			delete(v.byName, name)
		}
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (v *volumes) ControllerPublishVolume(_ context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if err := check(req.GetVolumeId(), req.GetVolumeCapability()); err != nil {
		return nil, err
	}
	switch {
	case req.GetNodeId() == "":
		return nil, status.Error(codes.InvalidArgument, "no node_id")
	case !v.has(req.GetVolumeId()) || req.GetNodeId() != nodeName:
		return nil, status.Error(codes.NotFound, "no such volume or node")
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{fairleadcsi.AddressKey(driver): "10.0.0.1"}}, nil
}

func (v *volumes) ControllerUnpublishVolume(_ context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume_id")
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (v *volumes) ValidateVolumeCapabilities(_ context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if err := check(req.GetVolumeId(), req.GetVolumeCapabilities()...); err != nil {
		return nil, err
	}
	if !v.has(req.GetVolumeId()) {
		return nil, status.Error(codes.NotFound, "no such volume")
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: req.GetVolumeCapabilities()}}, nil
}

func (v *volumes) has(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, have := range v.byName {
		if have.VolumeId == id {
			return true
		}
	}
	return false
}

// check refuses a request that names no volume, or capabilities that the product's shares do not have.
func check(volume string, capabilities ...*csi.VolumeCapability) error {
	if volume == "" || len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "no volume or no capabilities")
	}
	for _, c := range capabilities {
		if err := node.CheckCapability(c); err != nil {
			return status.Error(codes.InvalidArgument, status.Convert(err).Message())
		}
	}
	return nil
}
