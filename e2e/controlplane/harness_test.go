package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead-io/fairlead/e2e/controlplane/cluster"
)

// program builds the controlplane command and everything it needs.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "controlplane")
	if output, err := exec.Command("go", "build", "-o", path, "./cmd/controlplane").CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, output)
	}
	build := exec.Command(path, "build")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		t.Fatalf("building the control plane: %v", err)
	}
	return path
}

// running is a control plane in a child process.
type running struct {
	command *exec.Cmd
	stdin   io.Closer
	dir     string
	state   cluster.State
	typed   kubernetes.Interface
	dynamic dynamic.Interface
	output  *output
}

// start runs the program until the test ends, at the latest, and returns when
// the control plane is ready.
func start(t *testing.T, program, dir string, flags ...string) *running {
	t.Helper()
	result := &running{dir: dir, output: &output{}}
	result.command = exec.Command(program, append([]string{"run", "--until-stdin-closes", "--dir", dir}, flags...)...)
	result.command.Stdout, result.command.Stderr = result.output, result.output
	stdin, err := result.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	result.stdin = stdin
	if err := result.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close() })

	eventually(t, 2*time.Minute, "ready", func() error {
		content, err := os.ReadFile(filepath.Join(dir, "ready"))
		if err != nil {
			return errors.New(result.output.String())
		}
		if err := json.Unmarshal(content, &result.state); err != nil {
			return err
		}
		// The file of a predecessor that was killed is still there for a moment.
		if pid := result.state.Pids["controlplane"]; pid != result.command.Process.Pid {
			return fmt.Errorf("the file ready is of process %d", pid)
		}
		return nil
	})
	config, err := clientcmd.BuildConfigFromFlags("", result.state.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if result.typed, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if result.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return result
}

// left returns the names of the processes that are still there.
func (r *running) left() []string {
	var names []string
	for name, pid := range r.state.Pids {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			names = append(names, name)
		}
	}
	return names
}

// output may be read while it is written.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(content []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(content)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// eventually fails the test if the condition does not come to hold in time.
func eventually(t *testing.T, timeout time.Duration, what string, condition func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not %s after %s: %v", what, timeout, err)
		case <-time.After(20 * time.Millisecond): // conditions read processes and files too
		}
	}
}
