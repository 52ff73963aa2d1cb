package main

import (
	"context"
	"encoding/json"
	"io"

	enginemeta "github.com/longhorn/longhorn-engine/pkg/meta"
	"github.com/longhorn/longhorn-instance-manager/pkg/meta"
	rpc "github.com/longhorn/types/pkg/generated/imrpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// processes is the older service of an instance manager (port 8500): longhorn-manager
// asks it for the version before anything else.
type processes struct {
	rpc.UnimplementedProcessManagerServiceServer
}

func (processes) VersionGet(context.Context, *emptypb.Empty) (*rpc.VersionResponse, error) {
	return version(), nil
}

// version is that of the instance manager whose module this is built from.
func version() *rpc.VersionResponse {
	v := meta.GetVersion()
	return &rpc.VersionResponse{
		Version: v.Version, GitCommit: v.GitCommit, BuildDate: v.BuildDate,
		InstanceManagerAPIVersion: int64(v.InstanceManagerAPIVersion), InstanceManagerAPIMinVersion: int64(v.InstanceManagerAPIMinVersion),
		InstanceManagerProxyAPIVersion: int64(v.InstanceManagerProxyAPIVersion), InstanceManagerProxyAPIMinVersion: int64(v.InstanceManagerProxyAPIMinVersion),
	}
}

// printEngine prints the versions of the engine whose module this is built from, as its program does.
func printEngine(out io.Writer, release string) error {
	v := enginemeta.GetVersion()
	v.Version = release
	return json.NewEncoder(out).Encode(map[string]any{"clientVersion": v, "serverVersion": nil})
}
