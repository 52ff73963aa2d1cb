package volumes

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// unusable says why no new mount finds a server by its headless Service; empty if one does.
func (r *Reconciler) unusable(ctx context.Context, service *rwx.Service, record rollout.Record) (string, error) {
	network := service.Network(record.Clients)
	switch {
	case service.OptOut:
		return "", nil
	case service.Unpublished(record.Clients):
		return fmt.Sprintf("Service %s is headless, and CSI plugin pods are on no network: nothing is published for it", service.Name), nil
	case network != record.Clients || !record.Servers.IsZero():
		return "", nil
	}
	// RWX volumes leave the network. By its values, applied or not, the storage system no longer mounts in CSI plugin pods.
	_, system, err := r.Live.Values(ctx)
	if err != nil || !rollout.MountsMiss(service, record.Clients, rollout.MountPlace(system, r.Names)) {
		return "", err
	}
	return fmt.Sprintf("Service %s is for %s, and volumes are mounted from the node's network", service.Name, network), nil
}

// repairService deletes a headless Service that new mounts do not find the server by,
// with its server pod. The storage system creates both, and the webhooks give the
// Service a cluster IP. A workload that was started may have the volume mounted: the
// Service stays. After a crash between the two deletions, repairMissingService goes on.
func (r *Reconciler) repairService(ctx context.Context, sm *longhorn.ShareManager, service *rwx.Service, server *rwx.Server, record rollout.Record, wrong string) (time.Duration, error) {
	if wait, err := r.waitForWorkload(ctx, sm, record, wrong, fmt.Sprintf("Service %s is replaced", service.Name)); wait > 0 || err != nil {
		return wait, err
	}
	if wait := r.repairs[sm.Name].next.Sub(r.Clock.Now()); wait > 0 {
		return wait, nil
	}
	uid, version := types.UID(service.UID), service.ResourceVersion
	unchanged := client.Preconditions{UID: &uid, ResourceVersion: &version}
	old, err := r.Live.ServiceObject(ctx, service.Name)
	if err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	successor, err := kit.RenewedService(r.Names, old, record, rwx.Request{})
	if err != nil {
		return 0, err
	}
	pod := podOf(server, r.Names.Namespace)
	if err = kit.CanReplace(ctx, r.Client, old, successor, unchanged); err == nil {
		err = client.IgnoreNotFound(r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}, client.DryRunAll))
	}
	if err == nil {
		err = r.Client.Delete(ctx, old, unchanged)
	}
	if kit.IsRefused(err) {
		r.report(sm, "Refused", fmt.Sprintf("%s; Service %s can't be replaced: %v", wrong, service.Name, err))
		return inUseRetry, nil
	}
	if kit.IsConflict(err) {
		return 0, nil // its change is an event
	}
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("replacing Service %s: %w", service.Name, err)
	}
	done := fmt.Sprintf("Service %s was deleted and server pod %s restarted, so that Longhorn creates both on the cluster network", service.Name, server.Pod)
	return r.restartServer(ctx, sm, pod, done, wrong)
}

// repairMissingService restarts a server pod that has no Service: the storage
// system creates the Service only when it creates the pod.
//
// Source: longhorn-manager v1.7.2 controller/share_manager_controller.go, createShareManagerPod.
func (r *Reconciler) repairMissingService(ctx context.Context, sm *longhorn.ShareManager) (time.Duration, error) {
	record, err := r.Live.Record(ctx)
	if errors.Is(err, reads.ErrNotRecorded) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	server, err := r.Live.RunningServer(ctx, sm.Name)
	if err != nil || server == nil {
		return 0, err
	}
	// The Service may have been created with the pod since the first look.
	if service, err := r.Live.Service(ctx, sm.Name); err != nil || service != nil {
		return 0, err
	}
	wrong := fmt.Sprintf("server pod %s has no Service", server.Pod)
	if wait, err := r.waitForWorkload(ctx, sm, record, wrong, fmt.Sprintf("server pod %s is restarted", server.Pod)); wait > 0 || err != nil {
		return wait, err
	}
	done := fmt.Sprintf("server pod %s was restarted, so that Longhorn creates the Service with it", server.Pod)
	return r.restartServer(ctx, sm, podOf(server, r.Names.Namespace), done, wrong)
}

// podOf is the server's pod, to delete it.
func podOf(server *rwx.Server, namespace string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: server.Pod, UID: types.UID(server.UID)}}
}
