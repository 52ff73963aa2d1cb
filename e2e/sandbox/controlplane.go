package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox/forwarder"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// State is what the control plane says of itself once it is ready.
type State struct {
	Kubeconfig    string   `json:"kubeconfig"`
	Kubectl       string   `json:"kubectl"`
	LogDir        string   `json:"logDir"`
	ClusterDomain string   `json:"clusterDomain"`
	Nodes         []string `json:"nodes"`
}

// controlPlane is the child process that runs all of the control plane. It ends
// when its standard input does, so it can't outlive this process.
type controlPlane struct {
	state  State
	cmd    *exec.Cmd
	stdin  io.Closer
	exited chan error
}

// startTimeout leaves room for a cold build on a small machine.
const startTimeout = 60 * time.Minute

// apiPort is where the webhook's pods serve the REST API.
const apiPort = 9444

func startControlPlane(ctx context.Context, root string, o Options, api *forwarder.Forwarder) (*controlPlane, error) {
	binary, err := buildControlPlane(ctx, root, o)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Dir, "controlplane")
	ready := filepath.Join(dir, "ready")
	args := []string{"run", "--dir", dir, "--nodes", fmt.Sprint(o.Nodes), "--until-stdin-closes"}
	if o.ClusterDomain != "" {
		args = append(args, "--cluster-domain", o.ClusterDomain)
	}
	if o.FastNodeLoss {
		args = append(args, "--fast-node-loss")
	}
	if o.Audit {
		args = append(args, "--audit-group", "system:serviceaccounts:"+registration.Namespace)
	}
	if o.AuditWrites {
		args = append(args, "--audit-writes")
	}
	if o.NoAttacher {
		args = append(args, "--no-attacher")
	}
	if o.Address != "" {
		args = append(args, "--address", o.Address)
	}
	for _, name := range o.Kubelets {
		args = append(args, "--kubelet", name)
	}
	if api != nil {
		args = append(args, "--forward", fmt.Sprintf("%s:%d=%d", registration.Namespace, apiPort, api.Port()))
	}
	cmd := exec.Command(binary, args...) // not by ctx: it is stopped in order, by stop
	cmd.Stdout, cmd.Stderr = o.Out, o.Out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches it through us, in order
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	p := &controlPlane{cmd: cmd, stdin: stdin, exited: make(chan error, 1)}
	go func() { p.exited <- cmd.Wait() }()
	if err := p.waitReady(ctx, ready); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func buildControlPlane(ctx context.Context, root string, o Options) (string, error) {
	if built := os.Getenv("FAIRLEAD_CONTROLPLANE"); built != "" {
		return filepath.Abs(built)
	}
	binary := filepath.Join(o.Dir, "bin", "controlplane")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/controlplane")
	fmt.Fprintln(o.Out, "building the control plane's runner")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as everything else here, for one build cache
	cmd.Dir = filepath.Join(root, "e2e", "controlplane")
	cmd.Stdout, cmd.Stderr = o.Out, o.Out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building e2e/controlplane: %w", err)
	}
	return binary, nil
}

var errExited = errors.New("the control plane ended before it was ready")

func (p *controlPlane) waitReady(ctx context.Context, ready string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		data, err := os.ReadFile(ready)
		if err == nil {
			if err := json.Unmarshal(data, &p.state); err != nil {
				return fmt.Errorf("reading %s: %w", ready, err)
			}
			return nil
		}
		select {
		case err := <-p.exited:
			p.exited <- err
			return errors.Join(errExited, err)
		case <-ctx.Done():
			return fmt.Errorf("waiting for the control plane: %w", context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stopTimeout is far more than the control plane needs to end its parts.
const stopTimeout = 30 * time.Second

func (p *controlPlane) stop() error {
	_ = p.stdin.Close()
	select {
	case <-p.exited:
		return nil // its exit status on being asked to end is no news
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("the control plane did not end within %s", stopTimeout)
	}
}
