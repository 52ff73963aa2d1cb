// Package rest has the receiver of a file.
package rest

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/longhorn/sparse-tools/sparse"
)

// idleTimeout ends a receiver whose sender is gone.
const idleTimeout = 30 * time.Second

type SyncFileOperations interface {
	UpdateSyncFileProgress(size int64)
}

// SyncFileStub ignores progress.
type SyncFileStub struct{}

func (*SyncFileStub) UpdateSyncFileProgress(int64) {}

// Server receives one file.
func Server(ctx context.Context, port, path string, operations SyncFileOperations) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+port)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(idleTimeout)); err != nil {
		return err
	}
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := sparse.Receive(conn, path, idleTimeout, operations.UpdateSyncFileProgress); err != nil {
		return fmt.Errorf("receiving %s: %w", path, err)
	}
	return nil
}
