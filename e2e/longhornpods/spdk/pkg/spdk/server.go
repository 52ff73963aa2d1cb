// Package spdk has the server of the v2 data engine, which does not start.
package spdk

import (
	"context"
	"errors"

	"github.com/longhorn/types/pkg/generated/spdkrpc"
)

type Server struct {
	spdkrpc.UnimplementedSPDKServiceServer
}

func NewServer(context.Context, int32, int32) (*Server, error) {
	return nil, errors.New("the v2 data engine is not built for tests")
}
