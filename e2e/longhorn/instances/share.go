package main

import (
	"context"

	"github.com/longhorn/types/pkg/generated/smrpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// share is the service of a share manager (port 9600).
type share struct {
	smrpc.UnimplementedShareManagerServiceServer
}

func (share) FilesystemTrim(context.Context, *smrpc.FilesystemTrimRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (share) Unmount(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (share) Mount(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}
