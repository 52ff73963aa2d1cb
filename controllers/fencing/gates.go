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
	Client client.Client
	// Facts has the policy as it is now, and Holders who has a volume.
	Facts   *cluster.FenceReader
	Holders *cluster.HolderReader
	API     client.Reader
	Events  events.EventRecorder
	Log     *slog.Logger

	// told is why each pod waits, by namespace and name, as it was last said.
	told sync.Map
}

// heldAgain is how soon a pod that waits is looked at though nothing has happened.
const heldAgain = 30 * time.Second

// Reconcile looks at one pod. Pods that wait are few, so all is read live.
func (g *Gates) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	err := g.API.Get(ctx, request.NamespacedName, &pod)
	if apierrors.IsNotFound(err) {
		g.told.Delete(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading pod %s: %w", request, err)
	}
	if gateOf(&pod) < 0 {
		g.told.Delete(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	held, err := g.held(ctx, &pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	if held != nil {
		g.tell(&pod, held)
		return ctrl.Result{RequeueAfter: heldAgain}, nil
	}
	err = g.lift(ctx, &pod)
	if apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: behind}, nil // a test of the patch failed: somebody was faster
	}
	return ctrl.Result{}, err
}

// held tells for whom the pod waits; nil is nobody. A claim without a volume is
// held by nobody.
func (g *Gates) held(ctx context.Context, pod *corev1.Pod) (*fence.Held, error) {
	policy := g.Facts.Policy()
	var pods *corev1.PodList // of the namespace, once one of the volumes is protected
	for _, claim := range cluster.Claims(pod) {
		v, err := g.Holders.BoundVolume(ctx, pod.Namespace, claim)
		if err != nil {
			return nil, err
		}
		if v == nil || !g.Facts.Protects(v.Driver) {
			continue
		}
		holders, err := g.Holders.Holders(ctx, *v)
		if err != nil {
			return nil, err
		}
		if pods == nil {
			pods = &corev1.PodList{}
			if err := g.API.List(ctx, pods, client.InNamespace(pod.Namespace)); err != nil {
				return nil, fmt.Errorf("listing the pods of namespace %s: %w", pod.Namespace, err)
			}
		}
		users, err := g.users(ctx, pods, *v, claim, holders)
		if err != nil {
			return nil, err
		}
		if held := fence.Attach(*v, "", append(holders, users...), policy); held != nil {
			return held, nil
		}
	}
	return nil, nil
}

// users are the nodes where pods use the claim of a volume that are not among the holders: a
// driver without attachments leaves no other trace until the node's record has it.
func (g *Gates) users(ctx context.Context, pods *corev1.PodList, v fence.Volume, claim string, known []fence.Holder) ([]fence.Holder, error) {
	var users []fence.Holder
	for i := range pods.Items {
		node := pods.Items[i].Spec.NodeName
		is := func(h fence.Holder) bool { return h.Node.Name == node }
		if node == "" || cluster.Ended(&pods.Items[i]) || slices.ContainsFunc(known, is) || slices.ContainsFunc(users, is) || !slices.Contains(cluster.Claims(&pods.Items[i]), claim) {
			continue
		}
		of, err := g.Holders.HoldersOf(ctx, v, node)
		if err != nil {
			return nil, err
		}
		users = append(users, of...)
	}
	return users, nil
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
	g.told.Delete(client.ObjectKeyFromObject(pod))
	g.Log.Info("let a pod be scheduled", "namespace", pod.Namespace, "pod", pod.Name)
	g.Events.Eventf(pod, nil, corev1.EventTypeNormal, "FenceGateLifted", "Lift", "its volumes are held by no lost node any more")
	return nil
}

// toldPod is what was said to a pod; the next one of its name has heard nothing.
type toldPod struct {
	uid     types.UID
	message string
}

// tell says on the pod why it waits, each reason once.
func (g *Gates) tell(pod *corev1.Pod, held *fence.Held) {
	says := toldPod{pod.UID, held.Message}
	if was, _ := g.told.Swap(client.ObjectKeyFromObject(pod), says); was == says {
		return
	}
	g.Log.Info("a pod waits for a fence", "namespace", pod.Namespace, "pod", pod.Name, "node", held.Node, "reason", held.Reason, "message", held.Message)
	g.Events.Eventf(pod, nil, corev1.EventTypeWarning, held.Reason, "Wait", "%s", clipped(held.Message))
}
