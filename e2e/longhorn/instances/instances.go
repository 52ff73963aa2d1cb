package main

import (
	"context"
	"log"
	"maps"

	rpc "github.com/longhorn/types/pkg/generated/imrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// instances is the service of an instance manager (port 8503): an instance runs as soon
// as it is created.
type instances struct {
	rpc.UnimplementedInstanceServiceServer
	pods *pods
}

func (s instances) InstanceCreate(ctx context.Context, r *rpc.InstanceCreateRequest) (*rpc.InstanceResponse, error) {
	s.pods.mu.Lock()
	defer s.pods.mu.Unlock()
	pod, err := s.pods.called(ctx)
	if err != nil {
		return nil, err
	}
	if pod.instances[r.Spec.Name] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "instance %s already exists", r.Spec.Name)
	}
	ports := r.Spec.PortCount
	created := &rpc.InstanceResponse{Spec: r.Spec, Status: &rpc.InstanceStatus{
		State: "running", PortStart: pod.nextPort, PortEnd: pod.nextPort + ports - 1, Conditions: map[string]bool{},
	}}
	pod.nextPort += ports
	pod.instances[r.Spec.Name] = created
	pod.replicas[r.Spec.Name] = replicasOf(r.Spec.ProcessInstanceSpec.GetArgs())
	log.Printf("%s: create %s %s %v", calledAddress(ctx), r.Spec.Type, r.Spec.Name, r.Spec.ProcessInstanceSpec.GetArgs())
	pod.tell()
	return created, nil
}

func (s instances) InstanceDelete(ctx context.Context, r *rpc.InstanceDeleteRequest) (*rpc.InstanceResponse, error) {
	s.pods.mu.Lock()
	defer s.pods.mu.Unlock()
	pod, err := s.pods.called(ctx)
	if err != nil {
		return nil, err
	}
	gone := pod.instances[r.Name]
	if gone == nil {
		return nil, noInstance(r.Name)
	}
	delete(pod.instances, r.Name)
	log.Printf("%s: delete %s", calledAddress(ctx), r.Name)
	pod.tell()
	return &rpc.InstanceResponse{Spec: gone.Spec, Status: &rpc.InstanceStatus{State: "stopped"}, Deleted: true}, nil
}

func (s instances) InstanceGet(ctx context.Context, r *rpc.InstanceGetRequest) (*rpc.InstanceResponse, error) {
	s.pods.mu.Lock()
	defer s.pods.mu.Unlock()
	pod, err := s.pods.called(ctx)
	if err != nil {
		return nil, err
	}
	if found := pod.instances[r.Name]; found != nil {
		return found, nil
	}
	return nil, noInstance(r.Name)
}

func (s instances) InstanceList(ctx context.Context, _ *emptypb.Empty) (*rpc.InstanceListResponse, error) {
	s.pods.mu.Lock()
	defer s.pods.mu.Unlock()
	pod, err := s.pods.called(ctx)
	if err != nil {
		return nil, err
	}
	return &rpc.InstanceListResponse{Instances: maps.Clone(pod.instances)}, nil
}

func (s instances) InstanceWatch(_ *emptypb.Empty, stream rpc.InstanceService_InstanceWatchServer) error {
	changed := make(chan struct{}, 1)
	s.pods.mu.Lock()
	pod, err := s.pods.called(stream.Context())
	if err != nil {
		s.pods.mu.Unlock()
		return err
	}
	pod.watchers[changed] = true
	s.pods.mu.Unlock()
	defer func() {
		s.pods.mu.Lock()
		defer s.pods.mu.Unlock()
		delete(pod.watchers, changed)
	}()
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case <-changed:
			if err := stream.Send(&emptypb.Empty{}); err != nil {
				return err
			}
		}
	}
}

func (instances) InstanceLog(*rpc.InstanceLogRequest, rpc.InstanceService_InstanceLogServer) error {
	return nil
}

func (instances) VersionGet(context.Context, *emptypb.Empty) (*rpc.VersionResponse, error) {
	return version(), nil
}

func (instances) LogSetLevel(context.Context, *rpc.LogSetLevelRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (instances) LogSetFlags(context.Context, *rpc.LogSetFlagsRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (instances) LogGetLevel(context.Context, *rpc.LogGetLevelRequest) (*rpc.LogGetLevelResponse, error) {
	return &rpc.LogGetLevelResponse{Level: "INFO"}, nil
}

func noInstance(name string) error {
	return status.Errorf(codes.NotFound, "cannot find instance %s", name)
}
