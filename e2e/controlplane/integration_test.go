package controlplane_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestControlPlane goes through the life of one control plane: what works in it
// while it runs, and what is left when it is stopped.
func TestControlPlane(t *testing.T) {
	program := program(t)
	dir := t.TempDir()

	first := start(t, program, dir, "--nodes=3")
	t.Log(first.output.String())
	t.Run("kubectl and server are of the pinned version", func(t *testing.T) { kubectlWorks(t, first) })
	t.Run("every CRD is served", func(t *testing.T) { crdsAreServed(t, first) })
	t.Run("networks", func(t *testing.T) { networks(t, first) })
	t.Run("sandboxes", func(t *testing.T) { sandboxes(t, first) })
	t.Run("a pod is ended once", func(t *testing.T) { endedOnce(t, first) })
	t.Run("certificates", func(t *testing.T) { certificates(t, first) })
	t.Run("volumes are attached", func(t *testing.T) { volumesAreAttached(t, first) })
	t.Run("workloads run", func(t *testing.T) { workloadsRun(t, first) })
	t.Run("a folder is used once at a time", func(t *testing.T) {
		output, err := exec.Command(program, "run", "--dir", dir).CombinedOutput()
		if err == nil || !strings.Contains(string(output), "name another folder") {
			t.Errorf("a second control plane in the folder: %v\n%s", err, output)
		}
	})

	if err := first.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.command.Wait(); err != nil {
		t.Errorf("stopped by its input: %v\n%s", err, first.output)
	}
	if err := first.nothingLeft(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ready")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file ready is left: %v", err)
	}
}

// TestDeadComponentStopsControlPlane also covers flags that the other test
// leaves alone.
func TestDeadComponentStopsControlPlane(t *testing.T) {
	program := program(t)
	running := start(t, program, t.TempDir(),
		"--nodes=1", "--fast-node-loss", "--cluster-domain=storage.example",
		"--audit-group=system:masters")
	service, err := running.typed.CoreV1().Services(metav1.NamespaceDefault).Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil || service.Spec.ClusterIP != "10.96.0.1" {
		t.Errorf("Service kubernetes has %q, %v", service.Spec.ClusterIP, err)
	}
	eventually(t, soon, "recorded", func() error {
		record, err := os.ReadFile(filepath.Join(running.state.LogDir, "audit.log"))
		if err == nil && !strings.Contains(string(record), "/services/kubernetes") {
			err = errors.New("the record does not have the request")
		}
		return err
	})

	if err := syscall.Kill(running.state.Pids["kube-scheduler"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var failure *exec.ExitError
	if err := running.command.Wait(); !errors.As(err, &failure) || failure.ExitCode() != 1 {
		t.Errorf("it ended with %v, want exit status 1", err)
	}
	for _, part := range []string{"kube-scheduler died: signal: killed", "last lines of " + running.state.LogDir} {
		if !strings.Contains(running.output.String(), part) {
			t.Errorf("%q is missing in:\n%s", part, running.output)
		}
	}
	if err := running.nothingLeft(); err != nil {
		t.Error(err)
	}
}

func TestNothingOutlivesAKilledControlPlane(t *testing.T) {
	running := start(t, program(t), t.TempDir(), "--nodes=0")
	if err := running.command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = running.command.Wait()
	eventually(t, 20*time.Second, "gone after SIGKILL", running.nothingLeft)
}

func (r *running) nothingLeft() error {
	if names := r.left(); len(names) > 0 {
		return fmt.Errorf("%v are left", names)
	}
	return nil
}

func kubectlWorks(t *testing.T, r *running) {
	output, err := exec.Command(r.state.Kubectl, "--kubeconfig", r.state.Kubeconfig, "version").CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl version: %v\n%s", err, output)
	}
	minor := r.state.Kubernetes[:strings.LastIndex(r.state.Kubernetes, ".")]
	for _, want := range []string{"Client Version: " + minor, "Server Version: " + minor} {
		if !strings.Contains(string(output), want) {
			t.Errorf("%q is missing in:\n%s", want, output)
		}
	}
}
