package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

const (
	// commandTimeout is needed since ceph waits forever for a missing monitor.
	commandTimeout = 5 * time.Second
	// maxOutput has room for about twenty thousand sessions of one CephFS server, at 1.5 KB each. Truncated output is
	// invalid JSON, and so an error.
	maxOutput    = 32 << 20
	maxComplaint = 300
)

// Local runs programs beside the server, with its environment.
func Local(ctx context.Context, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second // for children that keep the output open
	output, complaint := &bounded{most: maxOutput}, &bounded{most: maxComplaint}
	cmd.Stdout, cmd.Stderr = output, complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("running %s: %w: %s", program, errors.Join(ctx.Err(), err), bytes.TrimSpace(complaint.taken))
	}
	return output.taken, nil
}

// bounded is a buffer that drops output beyond its limit.
type bounded struct {
	taken []byte
	most  int
}

func (b *bounded) Write(data []byte) (int, error) {
	b.taken = append(b.taken, data[:min(len(data), b.most-len(b.taken))]...)
	return len(data), nil
}
