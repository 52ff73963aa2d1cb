package fencing

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/fence"
)

// Gates takes the scheduling gate off pods whose volumes nobody lost holds any
// more. The webhook has put it on; see fence.SchedulingGate. A request names a pod.
type Gates struct {
	Client       client.Client
	Cached, Live *cluster.FenceReader
	API          client.Reader
	Events       events.EventRecorder
	Log          *slog.Logger

	// told is why each pod waits, by UID, as it was last said.
	told sync.Map
}

// heldAgain is how soon a pod that waits is looked at though nothing has happened.
const heldAgain = 30 * time.Second

// Reconcile looks at one pod, in the cache, and before its gate goes on live reads.
func (g *Gates) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	held, waits, err := g.look(ctx, request, g.Client, g.Cached, &pod)
	if err == nil && waits && held == nil {
		held, waits, err = g.look(ctx, request, g.API, g.Live, &pod)
	}
	switch {
	case err != nil || !waits:
		return ctrl.Result{}, err
	case held != nil:
		g.tell(&pod, held)
		return ctrl.Result{RequeueAfter: heldAgain}, nil
	}
	err = g.lift(ctx, &pod)
	if apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: behind}, nil // a test of the patch failed: somebody was faster
	}
	return ctrl.Result{}, err
}

// look tells whether the pod waits, and for whom.
func (g *Gates) look(ctx context.Context, request ctrl.Request, objects client.Reader, facts *cluster.FenceReader, pod *corev1.Pod) (held *fence.Held, waits bool, err error) {
	err = objects.Get(ctx, request.NamespacedName, pod)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading pod %s: %w", request, err)
	}
	if gateOf(pod) < 0 {
		g.told.Delete(pod.UID)
		return nil, false, nil
	}
	policy, err := facts.Policy(ctx)
	if err != nil {
		return nil, true, err
	}
	volumes, err := facts.PodVolumes(ctx, pod)
	if err != nil {
		return nil, true, err
	}
	for _, v := range volumes {
		holders, err := facts.Holders(ctx, v)
		if err != nil {
			return nil, true, err
		}
		if held := fence.Attach(v.Volume, "", holders, policy); held != nil {
			return held, true, nil
		}
	}
	return nil, true, nil
}

func gateOf(pod *corev1.Pod) int {
	return slices.IndexFunc(pod.Spec.SchedulingGates, func(s corev1.PodSchedulingGate) bool { return s.Name == fence.SchedulingGate })
}

// operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// lift takes the gate off the pod that was looked at, and no other of its name.
func (g *Gates) lift(ctx context.Context, pod *corev1.Pod) error {
	at := fmt.Sprintf("/spec/schedulingGates/%d", gateOf(pod))
	operations := []operation{
		{Op: "test", Path: "/metadata/uid", Value: pod.UID},
		{Op: "test", Path: "/metadata/resourceVersion", Value: pod.ResourceVersion},
		{Op: "test", Path: at + "/name", Value: fence.SchedulingGate},
		{Op: "remove", Path: at},
	}
	if _, labelled := pod.Labels[fence.GatedLabel]; labelled {
		operations = append(operations, operation{Op: "remove", Path: "/metadata/labels/" + strings.ReplaceAll(fence.GatedLabel, "/", "~1")})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("letting pod %s/%s be scheduled: %w", pod.Namespace, pod.Name, err)
	}
	err = g.Client.Patch(ctx, pod, client.RawPatch(types.JSONPatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting pod %s/%s be scheduled: %w", pod.Namespace, pod.Name, err)
	}
	g.told.Delete(pod.UID)
	g.Log.Info("let a pod be scheduled", "namespace", pod.Namespace, "pod", pod.Name)
	g.Events.Eventf(pod, nil, corev1.EventTypeNormal, "FenceGateLifted", "Lift", "its volumes are held by no lost node any more")
	return nil
}

// tell says on the pod why it waits, each reason once.
func (g *Gates) tell(pod *corev1.Pod, held *fence.Held) {
	if was, _ := g.told.Swap(pod.UID, held.Message); was == held.Message {
		return
	}
	g.Log.Info("a pod waits for a fence", "namespace", pod.Namespace, "pod", pod.Name, "node", held.Node, "reason", held.Reason, "message", held.Message)
	g.Events.Eventf(pod, nil, corev1.EventTypeWarning, held.Reason, "Wait", "%s", clipped(held.Message))
}
