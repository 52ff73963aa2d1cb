package volumes

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/mutators"
)

// repair keeps the restarts for a volume.
type repair struct {
	times int
	next  time.Time
}

const (
	// inUseRetry is how soon the server of a used volume is checked again.
	inUseRetry = 30 * time.Second
	// firstRetry doubles up to maxRetry with each useless restart: the webhooks may be away.
	firstRetry = time.Minute
	maxRetry   = 16 * time.Minute
)

// repairServer restarts a server pod that is not on its Service's network, where its clients look
// for it. The restart waits until no started workload uses the volume. If a restart would change
// nothing, repairServer reports why.
func (r *Reconciler) repairServer(ctx context.Context, sm *longhorn.ShareManager, service *rwx.Service) (time.Duration, error) {
	record, err := r.Live.Record(ctx)
	if errors.Is(err, reads.ErrNotRecorded) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	r.reportFixed(sm, service, record)
	server, err := r.Live.RunningServer(ctx, sm.Name)
	if err != nil || server == nil {
		return 0, err
	}
	if wrong, err := r.unusable(ctx, service, record); wrong != "" || err != nil {
		if err != nil {
			return 0, err
		}
		return r.repairService(ctx, sm, service, server, record, wrong)
	}
	want := service.Network(record.Clients)
	// Clients reach a server on a network by its Service's cluster IP as well.
	if want.IsZero() || server.IsOn(want) && len(rwx.Publish(*service, []rwx.Server{*server}, record.Clients)) > 0 {
		delete(r.repairs, sm.Name)
		return 0, nil
	}
	if server.IsOn(want) {
		return r.repairUnreported(ctx, sm, server, want, record)
	}
	pod, result, err := r.asCreatedNow(ctx, server, service, record)
	if err != nil || pod == nil {
		return 0, err
	}
	wrong := fmt.Sprintf("server pod %s asks for network %q, but its Service uses %q", server.Pod, server.Network, want)
	if result.Outcome != mutators.Mutated {
		r.report(sm, "OutOfLine", fmt.Sprintf("%s: %s: %s", wrong, result.Reason, result.Detail))
		return 0, nil
	}
	if wait, err := r.waitForWorkload(ctx, sm, record, wrong, fmt.Sprintf("server pod %s is restarted", server.Pod)); wait > 0 || err != nil {
		return wait, err
	}
	return r.restartServer(ctx, sm, pod, fmt.Sprintf("server pod %s was restarted", server.Pod), wrong)
}

// repairUnreported restarts a server pod that requests its network and has no address there long after it became Ready: it started
// before Multus did.
func (r *Reconciler) repairUnreported(ctx context.Context, sm *longhorn.ShareManager, server *rwx.Server, want multus.Attachment, record rollout.Record) (time.Duration, error) {
	if server.ReadySince.IsZero() {
		return 0, nil // its readiness is an event
	}
	if wait := server.ReadySince.Add(rwx.ReportWithin).Sub(r.Clock.Now()); wait > 0 {
		return wait, nil
	}
	wrong := fmt.Sprintf("server pod %s is Ready and has no address on %q: Multus reports none", server.Pod, want)
	if wait, err := r.waitForWorkload(ctx, sm, record, wrong, fmt.Sprintf("server pod %s is restarted", server.Pod)); wait > 0 || err != nil {
		return wait, err
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID = r.Names.Namespace, server.Pod, types.UID(server.UID)
	return r.restartServer(ctx, sm, pod, fmt.Sprintf("server pod %s was restarted", server.Pod), wrong)
}

// asCreatedNow is what the webhook would do to the pod on creation.
func (r *Reconciler) asCreatedNow(ctx context.Context, server *rwx.Server, service *rwx.Service, record rollout.Record) (*corev1.Pod, mutators.Result, error) {
	var pod corev1.Pod
	err := r.API.Get(ctx, client.ObjectKey{Namespace: r.Names.Namespace, Name: server.Pod}, &pod)
	if err != nil || string(pod.UID) != server.UID {
		return nil, mutators.Result{}, client.IgnoreNotFound(err)
	}
	var view mutators.ServerPod
	view.Metadata.Labels = pod.Labels
	view.Metadata.Annotations = &mutators.PodAnnotations{
		Networks: pod.Annotations[multus.NetworksAnnotation], OptOut: pod.Annotations[rwx.OptOutAnnotation],
	}
	view.Spec.HostNetwork = pod.Spec.HostNetwork
	return &pod, mutators.MutateServerPod(view, r.Names, service, record), nil
}

// waitForWorkload is how long the repair must wait for a started workload; 0 is no wait.
func (r *Reconciler) waitForWorkload(ctx context.Context, sm *longhorn.ShareManager, record rollout.Record, wrong, repair string) (time.Duration, error) {
	user, err := r.startedWorkload(ctx, sm.Name, record.Clients)
	if err != nil || user == "" {
		return 0, err
	}
	r.report(sm, "OutOfLine", fmt.Sprintf("%s; %s when no started workload uses the volume: pod %s does", wrong, repair, user))
	return inUseRetry, nil
}

// startedWorkload names a pod that may have the volume mounted.
func (r *Reconciler) startedWorkload(ctx context.Context, volume string, applied multus.Attachment) (string, error) {
	// Longhorn reports most used volumes, which saves a list of all volumes.
	if user, err := r.runningWorkload(ctx, volume); user != "" || err != nil {
		return user, err
	}
	volumes, err := r.Live.Volumes(ctx)
	if err != nil {
		return "", err
	}
	for _, v := range volumes {
		if v.Name != volume {
			continue
		}
		for _, node := range v.Nodes {
			pods, err := reads.PodsOn(ctx, r.API, node)
			if err != nil {
				return "", err
			}
			for i := range pods {
				w, err := r.Live.Workload(ctx, &pods[i], applied)
				if err != nil {
					return "", err
				}
				if w.Started && w.Uses(volume) {
					return w.Namespace + "/" + w.Name, nil
				}
			}
		}
	}
	return "", nil
}

// runningWorkload names a running pod that uses the volume, as Longhorn reports it.
func (r *Reconciler) runningWorkload(ctx context.Context, name string) (string, error) {
	var volume longhorn.Volume
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Names.Namespace, Name: name}, &volume); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	status := volume.Status.KubernetesStatus
	if status.LastPodRefAt != "" {
		return "", nil // no workload uses the volume any more
	}
	for _, w := range status.WorkloadsStatus {
		if w.PodStatus == string(corev1.PodRunning) {
			return status.Namespace + "/" + w.PodName, nil
		}
	}
	return "", nil
}

// restartServer deletes the server pod, and reports the action and its cause.
func (r *Reconciler) restartServer(ctx context.Context, sm *longhorn.ShareManager, pod *corev1.Pod, done, wrong string) (time.Duration, error) {
	before := r.repairs[sm.Name]
	if wait := before.next.Sub(r.Clock.Now()); wait > 0 {
		return wait, nil
	}
	uid := pod.UID
	if err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &uid}); err != nil {
		if kit.IsStale(err) {
			return 0, nil
		}
		if kit.IsRefused(err) {
			r.report(sm, "Refused", fmt.Sprintf("%s; server pod %s can't be restarted: %v", wrong, pod.Name, err))
			return inUseRetry, nil
		}
		return 0, fmt.Errorf("restarting server pod %s: %w", pod.Name, err)
	}
	wait := kit.Backoff(firstRetry, maxRetry, before.times+1)
	r.repairs[sm.Name] = repair{times: before.times + 1, next: r.Clock.Now().Add(wait)}
	r.Log.Info("restarted a server pod", "volume", sm.Name, "pod", pod.Name, "why", wrong)
	r.Events.Eventf(sm, nil, corev1.EventTypeNormal, "Repaired", "Restart", "%s: %s, and no started workload uses the volume", done, wrong)
	return 0, nil
}

// reportFixed reports a volume that stays off the network because of its Service.
func (r *Reconciler) reportFixed(sm *longhorn.ShareManager, service *rwx.Service, record rollout.Record) {
	if service.Fixed && !record.Servers.IsZero() {
		r.report(sm, "NotClusterIP", fmt.Sprintf("Service %s is not of type ClusterIP and can't be headless: the Service is left alone, and the volume stays off network %s", service.Name, record.Servers))
	}
}

// report emits an event once for each reason and message.
func (r *Reconciler) report(sm *longhorn.ShareManager, reason, message string) {
	if !r.reports.IsNew([2]string{sm.Name, reason}, message) {
		return
	}
	r.Log.Warn("out of line", "volume", sm.Name, "detail", message)
	r.Events.Eventf(sm, nil, corev1.EventTypeWarning, reason, "Look", "%s", kit.Note(message))
}
