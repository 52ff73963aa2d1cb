package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/csi-addons/spec/lib/go/fence"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fenceServer blocks and unblocks addresses.
type fenceServer struct {
	fence.UnimplementedFenceControllerServer
	list list
	// fence and unfence are called before the list is changed.
	fence, unfence command
	// client and addresses are those on this node.
	client    string
	addresses []string
}

func (s fenceServer) FenceClusterNetwork(ctx context.Context, r *fence.FenceClusterNetworkRequest) (*fence.FenceClusterNetworkResponse, error) {
	storage, cidrs, err := checked(r)
	if err != nil {
		return nil, err
	}
	if err := s.fence.run(ctx, cidrs); err != nil {
		return nil, status.Errorf(codes.Internal, "failed to fence CIDR block %q: %s", cidrs, err)
	}
	if err := s.list.block(storage, cidrs); err != nil {
		return nil, status.Errorf(codes.Internal, "failed to fence CIDR block %q: %s", cidrs, err)
	}
	return &fence.FenceClusterNetworkResponse{}, nil
}

func (s fenceServer) UnfenceClusterNetwork(ctx context.Context, r *fence.UnfenceClusterNetworkRequest) (*fence.UnfenceClusterNetworkResponse, error) {
	storage, cidrs, err := checked(r)
	if err != nil {
		return nil, err
	}
	if err := s.unfence.run(ctx, cidrs); err != nil {
		return nil, status.Errorf(codes.Internal, "failed to unfence CIDR block %q: %s", cidrs, err)
	}
	if err := s.list.unblock(storage, cidrs); err != nil {
		return nil, status.Errorf(codes.Internal, "failed to unfence CIDR block %q: %s", cidrs, err)
	}
	return &fence.UnfenceClusterNetworkResponse{}, nil
}

func (s fenceServer) ListClusterFence(_ context.Context, r *fence.ListClusterFenceRequest) (*fence.ListClusterFenceResponse, error) {
	storage, err := storageOf(r)
	if err != nil {
		return nil, err
	}
	blocked, err := s.list.read()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &fence.ListClusterFenceResponse{Cidrs: messages(blocked[storage])}, nil
}

func (s fenceServer) GetFenceClients(_ context.Context, r *fence.GetFenceClientsRequest) (*fence.GetFenceClientsResponse, error) {
	if _, err := storageOf(r); err != nil {
		return nil, err
	}
	if s.client == "" || len(s.addresses) == 0 {
		return nil, status.Error(codes.Internal, "failed to get the client's address: it has none")
	}
	return &fence.GetFenceClientsResponse{Clients: []*fence.ClientDetails{{Id: s.client, Addresses: messages(s.addresses)}}}, nil
}

// request is what all of them have.
type request interface {
	GetParameters() map[string]string
	GetSecrets() map[string]string
}

var errNoStorage = errors.New("missing or empty clusterID")

// storageOf is the storage that a request is about. It must have the right to it.
func storageOf(r request) (string, error) {
	storage := r.GetParameters()["clusterID"]
	if storage == "" {
		return "", invalid(errNoStorage)
	}
	return storage, invalid(credentials(r.GetSecrets()))
}

// checked is what is to be done in which storage.
func checked(r interface {
	request
	GetCidrs() []*fence.CIDR
}) (storage string, cidrs []string, err error) {
	if len(r.GetCidrs()) == 0 {
		return "", nil, invalid(errors.New("CIDR block cannot be empty"))
	}
	if storage, err = storageOf(r); err != nil {
		return "", nil, err
	}
	var texts []string
	for _, c := range r.GetCidrs() {
		texts = append(texts, c.GetCidr())
	}
	cidrs, err = blocks(texts)
	return storage, cidrs, invalid(err)
}

// credentials have the fields that ceph-csi looks for in a secret.
func credentials(secrets map[string]string) error {
	if len(secrets) == 0 {
		return errors.New("provided secret is empty")
	}
	for _, field := range []string{"userID", "userKey"} {
		if secrets[field] == "" {
			return fmt.Errorf("missing field '%s' in secrets", field)
		}
	}
	return nil
}

func invalid(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codes.InvalidArgument, err.Error())
}

func messages(cidrs []string) []*fence.CIDR {
	var list []*fence.CIDR
	for _, c := range cidrs {
		list = append(list, &fence.CIDR{Cidr: c})
	}
	return list
}
