package main

import (
	"context"

	"github.com/csi-addons/spec/lib/go/identity"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// identityServer tells what ceph-csi does: the controller fences, the plugin on a
// node knows which clients are on it.
type identityServer struct {
	identity.UnimplementedIdentityServer
	driver     string
	controller bool
}

func (s identityServer) GetIdentity(context.Context, *identity.GetIdentityRequest) (*identity.GetIdentityResponse, error) {
	return &identity.GetIdentityResponse{Name: s.driver, VendorVersion: "e2e"}, nil
}

func (s identityServer) GetCapabilities(context.Context, *identity.GetCapabilitiesRequest) (*identity.GetCapabilitiesResponse, error) {
	if s.controller {
		return &identity.GetCapabilitiesResponse{Capabilities: []*identity.Capability{
			service(identity.Capability_Service_CONTROLLER_SERVICE), networkFence(identity.Capability_NetworkFence_NETWORK_FENCE),
		}}, nil
	}
	return &identity.GetCapabilitiesResponse{Capabilities: []*identity.Capability{
		service(identity.Capability_Service_NODE_SERVICE), networkFence(identity.Capability_NetworkFence_GET_CLIENTS_TO_FENCE),
	}}, nil
}

func (s identityServer) Probe(context.Context, *identity.ProbeRequest) (*identity.ProbeResponse, error) {
	return &identity.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func service(kind identity.Capability_Service_Type) *identity.Capability {
	return &identity.Capability{Type: &identity.Capability_Service_{Service: &identity.Capability_Service{Type: kind}}}
}

func networkFence(kind identity.Capability_NetworkFence_Type) *identity.Capability {
	return &identity.Capability{Type: &identity.Capability_NetworkFence_{NetworkFence: &identity.Capability_NetworkFence{Type: kind}}}
}
