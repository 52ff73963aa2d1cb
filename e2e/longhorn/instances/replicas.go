package main

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/longhorn/types/pkg/generated/enginerpc"
	rpc "github.com/longhorn/types/pkg/generated/imrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// replicasOf reads the replicas that an engine is started with.
func replicasOf(args []string) []string {
	var addresses []string
	for i, arg := range args {
		if arg == "--replica" && i+1 < len(args) {
			addresses = append(addresses, args[i+1])
		}
	}
	return addresses
}

func (p proxy) ReplicaList(_ context.Context, r *rpc.ProxyEngineRequest) (*rpc.EngineReplicaListProxyResponse, error) {
	p.pods.mu.Lock()
	defer p.pods.mu.Unlock()
	pod, err := p.pods.engine(r)
	if err != nil {
		return nil, err
	}
	list := &enginerpc.ReplicaListReply{}
	for _, address := range pod.replicas[r.EngineName] {
		list.Replicas = append(list.Replicas, &enginerpc.ControllerReplica{
			Address: &enginerpc.ReplicaAddress{Address: address}, Mode: enginerpc.ReplicaMode_RW,
		})
	}
	return &rpc.EngineReplicaListProxyResponse{ReplicaList: list}, nil
}

// ReplicaAdd rebuilds a replica in no time. A replica that the engine has already, maybe
// under another address, is open and refuses (longhorn-engine pkg/backend/remote).
func (p proxy) ReplicaAdd(_ context.Context, r *rpc.EngineReplicaAddRequest) (*emptypb.Empty, error) {
	p.pods.mu.Lock()
	defer p.pods.mu.Unlock()
	pod, err := p.pods.engine(r.ProxyEngineRequest)
	if err != nil {
		return nil, err
	}
	name := r.ProxyEngineRequest.EngineName
	for _, address := range pod.replicas[name] {
		if p.pods.same(address, r.ReplicaAddress) {
			return nil, status.Error(codes.Unknown, "replica must be closed, cannot add in state: open")
		}
	}
	pod.replicas[name] = append(pod.replicas[name], r.ReplicaAddress)
	return &emptypb.Empty{}, nil
}

// ReplicaRemove keeps the last replica (longhorn-engine pkg/controller).
func (p proxy) ReplicaRemove(_ context.Context, r *rpc.EngineReplicaRemoveRequest) (*emptypb.Empty, error) {
	p.pods.mu.Lock()
	defer p.pods.mu.Unlock()
	pod, err := p.pods.engine(r.ProxyEngineRequest)
	if err != nil {
		return nil, err
	}
	name := r.ProxyEngineRequest.EngineName
	left := slices.DeleteFunc(slices.Clone(pod.replicas[name]), func(address string) bool { return address == r.ReplicaAddress })
	if len(left) == 0 {
		return nil, status.Error(codes.Unknown, "cannot remove last replica if volume is up")
	}
	pod.replicas[name] = left
	return &emptypb.Empty{}, nil
}

// same tells whether two addresses lead to one process. The caller holds the lock.
func (p *pods) same(one, other string) bool {
	a, aPort, _ := net.SplitHostPort(strings.TrimPrefix(one, "tcp://"))
	b, bPort, _ := net.SplitHostPort(strings.TrimPrefix(other, "tcp://"))
	return aPort == bPort && p.byAddress[a] != nil && p.byAddress[a] == p.byAddress[b]
}

// engine returns the pod that an engine runs in. The caller holds the lock.
func (p *pods) engine(r *rpc.ProxyEngineRequest) (*pod, error) {
	address, _, _ := strings.Cut(r.Address, ":")
	if pod := p.byAddress[address]; pod != nil && pod.instances[r.EngineName] != nil {
		return pod, nil
	}
	return nil, status.Errorf(codes.Unavailable, "no engine %s at %s", r.EngineName, r.Address)
}
