package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// devDir is where make up keeps everything, below the folder it is called in.
const devDir = ".dev"

func pidFile() string    { return filepath.Join(devDir, "pid") }
func kubeconfig() string { return filepath.Join(devDir, "kubeconfig") }

// up starts serve in the background and waits until it is ready.
func up(ctx context.Context, longhorn string) error {
	if err := canRun(longhorn); err != nil {
		return err
	}
	if pid, alive := running(); alive {
		return fmt.Errorf("already up (process %d): export KUBECONFIG=%s, or make down", pid, kubeconfig())
	}
	// A run that was killed may have left a cluster with another Longhorn.
	if err := errors.Join(os.RemoveAll(devDir), os.MkdirAll(devDir, 0o755)); err != nil {
		return fmt.Errorf("making %s: %w", devDir, err)
	}
	logPath := filepath.Join(devDir, "log")
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.Command(self, "serve", longhorn)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // outlives this terminal
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	if err := os.WriteFile(pidFile(), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		return errors.Join(fmt.Errorf("writing the process number: %w", err), cmd.Process.Kill())
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	shown := 0
	for {
		shown += show(logPath, shown)
		if _, err := os.Stat(kubeconfig()); err == nil {
			return welcome(longhorn)
		}
		select {
		case err := <-exited:
			show(logPath, shown)
			return fmt.Errorf("it ended before it was ready: %w", errors.Join(errors.New("see "+logPath), err))
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-exited
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// show prints what has come to the log since, and returns how much.
func show(path string, from int) int {
	data, err := os.ReadFile(path)
	if err != nil || len(data) <= from {
		return 0
	}
	_, _ = os.Stdout.Write(data[from:])
	return len(data) - from
}

// serve runs the cluster until it is told to end.
func serve(ctx context.Context) error {
	defer func() { _ = errors.Join(os.Remove(pidFile()), os.Remove(kubeconfig())) }()
	s, err := start(ctx, devDir)
	if err != nil {
		return err
	}
	fmt.Println("installing Fairlead")
	if err := install(ctx, s); err != nil {
		return errors.Join(err, s.Stop())
	}
	if err := offer(s, ""); err != nil {
		return errors.Join(err, s.Stop())
	}
	var longhorn sync.WaitGroup
	for _, run := range []func(context.Context){s.Longhorn().RunComponents, s.Longhorn().RunEndpoints, s.Longhorn().RunShareManagers, s.Longhorn().FollowAttachments} {
		longhorn.Go(func() { run(ctx) })
	}
	longhorn.Wait()
	return s.Stop()
}

// down ends what up has started, and removes what it wrote.
func down() error {
	pid, alive := running()
	if !alive {
		fmt.Println("nothing is up")
	} else {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			return fmt.Errorf("ending process %d: %w", pid, err)
		}
		for range 600 {
			if _, alive := running(); !alive {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if pid, alive := running(); alive {
			return fmt.Errorf("process %d has not ended within a minute", pid)
		}
		fmt.Println("down")
	}
	return os.RemoveAll(devDir)
}

// running returns the process that up has left, if it lives and is ours.
func running() (int, bool) {
	data, err := os.ReadFile(pidFile())
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || syscall.Kill(pid, 0) != nil {
		return 0, false
	}
	// A process number may have gone to somebody else since.
	if command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && !strings.Contains(string(command), "serve") {
		return 0, false
	}
	return pid, true
}
