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

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// devDir is where make up keeps everything, below the folder it is called in.
const devDir = ".dev"

// fencingVariable adds Ceph and fencing to the cluster of make up.
const fencingVariable = "FENCING"

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

// serve runs the cluster until it gets a signal.
func serve(ctx context.Context) error {
	defer func() { _ = errors.Join(os.Remove(pidFile()), os.Remove(kubeconfig())) }()
	fencing := os.Getenv(fencingVariable) != ""
	s, err := start(ctx, devDir, fencing)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	lh := s.Longhorn()
	for _, run := range []func(context.Context){lh.RunComponents, lh.RunEndpoints, lh.RunShareManagers, lh.FollowAttachments, lh.ProvisionClaims} {
		parts.Go(func() { run(running) })
	}
	if fencing {
		parts.Go(func() { s.RunKubelets(running) })
		err = s.SeedCeph(running)
	}
	if err == nil {
		err = keepFairlead(running, s, &parts)
	}
	if err == nil {
		err = offer(s, "")
	}
	if err != nil {
		stop()
	}
	parts.Wait()
	stop()
	return errors.Join(err, s.Stop())
}

// keepFairlead installs Fairlead and runs a process for each of its pods until the context ends.
func keepFairlead(ctx context.Context, s *sandbox.Sandbox, parts *sync.WaitGroup) error {
	fmt.Println("installing Fairlead")
	if err := s.Install(ctx, sandbox.CertManager); err != nil {
		return err
	}
	parts.Go(func() { s.RunPods(ctx) })
	return s.WaitWorking(ctx)
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
