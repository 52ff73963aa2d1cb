package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/fence"
	"github.com/fairlead-io/fairlead/fence/watchers"
)

// ToolboxRunner runs commands in the storage system's toolbox pod.
type ToolboxRunner struct {
	config  *rest.Config
	live    client.Reader
	storage fence.Storage
}

// NewToolboxRunner runs commands as the configuration's user; live finds the pod.
func NewToolboxRunner(c *rest.Config, live client.Reader, s fence.Storage) *ToolboxRunner {
	return &ToolboxRunner{config: c, live: live, storage: s}
}

var errNoToolbox = errors.New("there is no toolbox pod that is Ready")

// Run implements Runner.
func (r *ToolboxRunner) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	pod, err := r.pod(ctx)
	if err != nil {
		return nil, err
	}
	execution, err := r.executor(pod, append([]string{program}, args...))
	if err != nil {
		return nil, fmt.Errorf("running %s in pod %s: %w", program, pod.Name, err)
	}
	output, complaint := &limited{most: watchers.MaxOutput}, &limited{most: maxComplaint, cut: true}
	err = execution.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: output, Stderr: complaint})
	return output.taken.Bytes(), failed(program+" in pod "+pod.Name, err, complaint)
}

// pod is the first by name that is Ready.
func (r *ToolboxRunner) pod(ctx context.Context) (*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.live.List(ctx, &list, client.InNamespace(r.storage.Namespace), client.MatchingLabels(r.storage.ToolboxLabels)); err != nil {
		return nil, fmt.Errorf("looking for the toolbox pod: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for i := range list.Items {
		if pod := &list.Items[i]; Ready(pod) && pod.DeletionTimestamp == nil && len(pod.Spec.Containers) > 0 {
			return pod, nil
		}
	}
	return nil, fmt.Errorf("namespace %s, labels %v: %w", r.storage.Namespace, r.storage.ToolboxLabels, errNoToolbox)
}

// executor speaks WebSocket: API servers have since 1.30, which fencing needs.
func (r *ToolboxRunner) executor(pod *corev1.Pod, command []string) (remotecommand.Executor, error) {
	base, _, err := rest.DefaultServerUrlFor(r.config)
	if err != nil {
		return nil, err
	}
	at := base.JoinPath("api", "v1", "namespaces", pod.Namespace, "pods", pod.Name, "exec")
	at.RawQuery = url.Values{
		"container": {pod.Spec.Containers[0].Name}, "command": command, "stdout": {"true"}, "stderr": {"true"},
	}.Encode()
	return remotecommand.NewWebSocketExecutor(r.config, "GET", at.String())
}
