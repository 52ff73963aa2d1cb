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
	// commandTimeout: ceph waits without an end for a monitor that is not there.
	commandTimeout = 5 * time.Second
	// maxOutput: one session of CephFS is about 1.5 KB, so some twenty thousand at one server. What is cut off
	// is no JSON any more, and so an error.
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

// bounded takes as much as it may, and drops the rest.
type bounded struct {
	taken []byte
	most  int
}

func (b *bounded) Write(data []byte) (int, error) {
	b.taken = append(b.taken, data[:min(len(data), b.most-len(b.taken))]...)
	return len(data), nil
}
