package ceph

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Process is a program that runs on a host in the background.
type Process struct{ *sandbox.Replica }

// Start starts a program on this host. What it writes goes to a log of its own.
func (h *Host) Start(as, name string, args ...string) (*Process, error) {
	r, err := sandbox.StartProcess(as, filepath.Join(h.dir, "log", as+".out"), "nsenter", h.arguments(name, args...), h.environment())
	if err != nil {
		return nil, err
	}
	return &Process{r}, nil
}

// Kill ends it like a power cut, without notice. It does not wait: a file system that does not answer keeps its clients.
func (p *Process) Kill() { _ = syscall.Kill(p.Pid(), syscall.SIGKILL) }

// Terminate asks it to end.
func (p *Process) Terminate() { _ = syscall.Kill(p.Pid(), syscall.SIGTERM) }

// Written is how many bytes it has written, which grows while it gets on.
func (p *Process) Written() int64 {
	info, err := os.Stat(p.Log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Tail are the last lines that it has written.
func (p *Process) Tail() string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s: %s", p.Name, lastLines(string(text), 4))
}
