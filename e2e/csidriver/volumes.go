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
	"github.com/fairlead-io/fairlead/internal/csi/capability"
	"github.com/fairlead-io/fairlead/internal/csi/controller"
)

// provisioner is the product's controller with CreateVolume and DeleteVolume.
type provisioner struct {
	controller.Server
	volumes *volumes
}

func (p *provisioner) Register(r grpc.ServiceRegistrar) { csi.RegisterControllerServer(r, p) }

func (p *provisioner) ControllerGetCapabilities(ctx context.Context, req *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	resp, err := p.Server.ControllerGetCapabilities(ctx, req)
	resp.Capabilities = append(resp.Capabilities, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
		Rpc: &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME},
	}})
	return resp, err
}

func (p *provisioner) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if req.GetName() == "" || len(req.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no name or no capabilities")
	}
	for _, c := range req.GetVolumeCapabilities() {
		if err := capability.Check(c); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
	}
	v, err := p.volumes.create(req.GetName(), req.GetCapacityRange().GetRequiredBytes())
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: v.id, CapacityBytes: v.size, VolumeContext: map[string]string{"share": "/exports", "subdir": v.id},
	}}, nil
}

func (p *provisioner) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "no volume_id")
	}
	p.volumes.delete(req.GetVolumeId())
	return &csi.DeleteVolumeResponse{}, nil
}

type volume struct {
	id   string
	size int64
}

// volumes is a fairleadcsi.Publisher: one server for all.
type volumes struct {
	mu     sync.Mutex
	byName map[string]*volume
	count  int
}

func (v *volumes) create(name string, size int64) (*volume, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	have, ok := v.byName[name]
	if ok && have.size != size {
		return nil, status.Error(codes.AlreadyExists, "the volume has another size")
	}
	if !ok {
		v.count++
		have = &volume{id: fmt.Sprintf("volume-%d", v.count), size: size}
		v.byName[name] = have
	}
	return have, nil
}

func (v *volumes) delete(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, have := range v.byName {
		if have.id == id {
			delete(v.byName, name)
		}
	}
}

func (v *volumes) HasVolume(_ context.Context, _, id string) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, have := range v.byName {
		if have.id == id {
			return true, nil
		}
	}
	return false, nil
}

func (v *volumes) Publish(ctx context.Context, driver, id, node string) (map[string]string, error) {
	if ok, _ := v.HasVolume(ctx, driver, id); !ok {
		return nil, fmt.Errorf("volume %s: %w", id, fairleadcsi.ErrNotFound)
	}
	if node != nodeName {
		return nil, fmt.Errorf("node %s: %w", node, fairleadcsi.ErrNotFound)
	}
	return map[string]string{fairleadcsi.AddressKey(driver): "10.0.0.1"}, nil
}

func (v *volumes) Unpublish(context.Context, string, string, string) error { return nil }
