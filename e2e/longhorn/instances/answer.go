package main

import (
	"context"
	"log"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// emptyAnswers are methods that only later versions have, for which an empty answer will do. They are named here, since the types
// of earlier versions lack them.
var emptyAnswers = []string{
	"RebuildingQosSet", "ReplicaRebuildConcurrentSyncLimitGet", "ReplicaRebuildConcurrentSyncLimitSet", // 1.12
}

// answer logs failures, and answers for methods of later versions.
func answer(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	response, err := handle(ctx, request)
	if status.Code(err) == codes.Unimplemented {
		if empty := emptyAnswer(info.FullMethod); empty != nil {
			return empty, nil
		}
	}
	if err != nil {
		log.Printf("%s: %s: %v", calledAddress(ctx), info.FullMethod, err)
	}
	return response, err
}

// emptyAnswer is the empty answer of a method such as /imrpc.ProxyEngineService/RebuildingQosSet; nil if the method needs more.
func emptyAnswer(method string) any {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if !slices.Contains(emptyAnswers, name) {
		return nil
	}
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + name))
	if err != nil {
		return nil
	}
	described, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil
	}
	message, err := protoregistry.GlobalTypes.FindMessageByName(described.Output().FullName())
	if err != nil {
		return nil
	}
	return message.New().Interface()
}

// healthy is what a kubelet's probe and longhorn-manager are answered.
type healthy struct {
	healthpb.UnimplementedHealthServer
}

func (healthy) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}
