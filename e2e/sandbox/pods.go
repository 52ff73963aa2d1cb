package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/changes"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// restartAfter keeps a process that always fails from starting all the time.
const restartAfter = 2 * time.Second

// RunPods does for Fairlead what kubelets do, until the context ends: a process runs for each pod of its
// Deployments. A killed process is restarted, and roll-outs, scaling and deleted pods act as in a cluster.
func (s *Sandbox) RunPods(ctx context.Context) {
	running := podProcesses{}
	changes.Follow(ctx, s.Client, func() {
		if err := s.syncPods(ctx, running); err != nil && ctx.Err() == nil {
			fmt.Fprintln(s.Out, "pods of Fairlead:", err)
		}
	}, []client.ObjectList{&corev1.PodList{}}, client.InNamespace(registration.Namespace))
}

// podProcesses by the UID of their pod.
type podProcesses map[types.UID]*podProcess

type podProcess struct {
	replica *Replica
	started time.Time
}

// syncPods starts what is missing. The processes of deleted pods end after those of the others are ready:
// kwok's pods are Ready at once, so a roll-out would otherwise end all of the old ones too early.
func (s *Sandbox) syncPods(ctx context.Context, running podProcesses) error {
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.InNamespace(registration.Namespace), client.MatchingLabels{"app.kubernetes.io/name": "fairlead"}); err != nil {
		return fmt.Errorf("listing the pods: %w", err)
	}
	var wanted []*corev1.Pod
	var problems []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		wanted = append(wanted, pod)
		problems = append(problems, s.ensurePod(ctx, pod, running))
	}
	for _, pod := range wanted {
		p := running[pod.UID]
		if p == nil || !p.replica.Running() {
			return errors.Join(problems...) // restarted soon
		}
		err := p.replica.WaitReady(ctx)
		if err == nil {
			err = s.reportPod(ctx, pod, "")
		}
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	for _, uid := range slices.Collect(maps.Keys(running)) {
		if !slices.ContainsFunc(wanted, func(p *corev1.Pod) bool { return p.UID == uid }) {
			problems = append(problems, running[uid].replica.Stop())
			delete(running, uid)
		}
	}
	return errors.Join(problems...)
}

func (s *Sandbox) ensurePod(ctx context.Context, pod *corev1.Pod, running podProcesses) error {
	p := running[pod.UID]
	if p != nil && p.replica.Running() {
		return nil
	}
	if p != nil {
		if err := s.reportPod(ctx, pod, "its process has ended: its log is "+p.replica.Log); err != nil {
			return err
		}
		if time.Since(p.started) < restartAfter {
			return nil
		}
		fmt.Fprintf(s.Out, "restarting pod %s: its process has ended\n", pod.Name)
		if err := p.replica.Kill(); err != nil { // forgets what belongs to it
			return err
		}
		delete(running, pod.UID)
	}
	r, err := s.StartReplica(ctx, "fairlead-"+pod.Labels["app.kubernetes.io/component"], pod.Name)
	if err != nil {
		return err
	}
	running[pod.UID] = &podProcess{replica: r, started: time.Now()}
	return nil
}

// reportPod writes into the status of a pod that its process runs or why it does not: kwok's pods stay Ready.
func (s *Sandbox) reportPod(ctx context.Context, pod *corev1.Pod, crash string) error {
	if IsReady(pod) == (crash == "") {
		return nil
	}
	return client.IgnoreNotFound(s.updatePodStatus(ctx, client.ObjectKeyFromObject(pod), func(pod *corev1.Pod) error {
		if crash == "" {
			startSandbox(pod, pod.Status.PodIPs, metav1.Now())
			return nil
		}
		stopSandbox(pod, metav1.Now())
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: crash}
		}
		return nil
	}))
}
