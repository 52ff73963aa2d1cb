// Package process runs child processes that can't outlive the process that
// started them.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// Spec says what to run.
type Spec struct {
	// Name is what people are told when the process dies.
	Name string
	Path string
	Args []string
	// Env is added to the environment of this process.
	Env []string
	// Dir is the working folder.
	Dir string
	// Log is the file that takes both output streams; it is appended to.
	Log string
}

// Process is a started child.
type Process struct {
	Spec Spec
	Pid  int

	done chan struct{}
	// err is how the process ended; it is written before done is closed.
	err error
}

// Start starts the process in a process group of its own: Ctrl-C in a terminal
// reaches only this process, which then stops its children in order.
func Start(spec Spec) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o755); err != nil {
		return nil, fmt.Errorf("making the log folder of %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", spec.Name, err)
	}
	// The child keeps its own copy.
	defer log.Close()

	command := exec.Command(spec.Path, spec.Args...)
	command.Dir = spec.Dir
	command.Env = append(os.Environ(), spec.Env...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = tiedToParent()

	process := &Process{Spec: spec, done: make(chan struct{})}
	started := make(chan error)
	go process.run(command, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return process, nil
}

// run starts the command and waits for it, all on one OS thread.
//
// The kernel sends the parent-death signal when the *thread* that forked ends,
// not when the process does. Go may end an idle thread whenever it likes; one
// that a goroutine has locked lives as long as the goroutine, and this goroutine
// lives as long as the child.
func (p *Process) run(command *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if err := command.Start(); err != nil {
		started <- err
		return
	}
	p.Pid = command.Process.Pid
	started <- nil

	p.err = command.Wait()
	close(p.done)
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended: nil for exit status 0. It may be asked only
// after Done is closed.
func (p *Process) Err() error { return p.err }

// Kill ends the process and its children now, and returns when the process is gone.
func (p *Process) Kill() {
	select {
	case <-p.done: // reaped: its number may belong to another process by now
		return
	default:
	}
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	<-p.done
}
