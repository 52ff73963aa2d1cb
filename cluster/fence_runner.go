package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/fence/watchers"
)

// Runner runs one command of a storage system, without a shell.
type Runner interface {
	// Run returns what the command printed, also where it has failed: some fail
	// although they have said all that they know.
	Run(ctx context.Context, program string, args ...string) ([]byte, error)
}

// commandTimeout is for one command: a storage system that is in trouble itself may not answer.
const commandTimeout = 5 * time.Second

// LocalRunner runs programs that are installed beside Fairlead.
type LocalRunner struct{}

// Run implements Runner.
func (LocalRunner) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second // for what it has started, and left its output to
	output, complaint := &limited{most: watchers.MaxOutput}, &limited{most: maxComplaint, cut: true}
	cmd.Stdout, cmd.Stderr = output, complaint
	err := cmd.Run()
	return output.taken.Bytes(), failed(program, err, complaint)
}

// maxComplaint is as much of the error output as is told.
const maxComplaint = 300

// failed says what a command said of its failure.
func failed(program string, err error, complaint *limited) error {
	if err == nil {
		return nil
	}
	if said := strings.TrimSpace(complaint.taken.String()); said != "" {
		return fmt.Errorf("running %s: %w: %s", program, err, said)
	}
	return fmt.Errorf("running %s: %w", program, err)
}

var errTooLong = errors.New("the answer is too long")

// limited takes no more than it may: then it fails, or cuts. The buffer is no
// part of its methods: io.Copy would go past Write.
type limited struct {
	taken bytes.Buffer
	most  int
	cut   bool
}

func (l *limited) Write(data []byte) (int, error) {
	room := l.most - l.taken.Len()
	if len(data) <= room {
		return l.taken.Write(data)
	}
	if !l.cut {
		return 0, errTooLong
	}
	l.taken.Write(data[:max(room, 0)])
	return len(data), nil
}
