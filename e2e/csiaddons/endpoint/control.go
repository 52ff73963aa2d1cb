package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// verbs that a test can have fail or wait, by their calls.
var verbs = map[string]string{
	"FenceClusterNetwork": "fence", "UnfenceClusterNetwork": "unfence", "ListClusterFence": "list", "GetFenceClients": "clients",
}

// control is what a test wants of the calls, by verb.
type control struct {
	Fail  map[string]string `json:"fail"`
	Delay map[string]string `json:"delay"`
}

// obey does what the control file says: a call waits first, then fails, and has
// changed nothing if it does. A file that can't be read fails every call, so that
// a test doesn't pass for a wrong reason.
func obey(file string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		verb, ok := verbs[call(info)]
		if !ok || file == "" {
			return handler(ctx, req)
		}
		c, err := readControl(file)
		if err != nil {
			return nil, status.Errorf(codes.Internal, "the control file: %s", err)
		}
		if text := c.Delay[verb]; text != "" {
			delay, err := time.ParseDuration(text)
			if err != nil {
				return nil, status.Errorf(codes.Internal, "the control file: %s", err)
			}
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				return nil, status.FromContextError(ctx.Err()).Err()
			}
		}
		if text := c.Fail[verb]; text != "" {
			return nil, status.Error(codes.Internal, text)
		}
		return handler(ctx, req)
	}
}

func readControl(file string) (control, error) {
	var c control
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(data, &c)
}
