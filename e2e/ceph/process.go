package ceph

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Process is a program that runs on a host in the background.
type Process struct {
	Name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// Start starts a program on this host. What it writes goes to a log of its own.
func (h *Host) Start(as, name string, args ...string) (*Process, error) {
	p := &Process{Name: as, log: filepath.Join(h.dir, "log", as+".out"), done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = h.command(context.Background(), name, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether it has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Kill ends it like a power cut, without notice.
func (p *Process) Kill() { p.cmd.Process.Kill() }

// Terminate asks it to end.
func (p *Process) Terminate() { p.cmd.Process.Signal(syscall.SIGTERM) }

// Written is how many bytes it has written, which grows while it gets on.
func (p *Process) Written() int64 {
	info, err := os.Stat(p.log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Tail are the last lines that it has written.
func (p *Process) Tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s: %s", p.Name, lastLines(string(text), 4))
}
