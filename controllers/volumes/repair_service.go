package volumes

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// repairService deletes a headless Service that nothing is published for, with
// its server pod. The storage system creates both, and the webhooks give the
// Service a cluster IP. No workload can have found the server by that Service
// unless its node reaches the storage network some other way: one that was started
// stays. After a crash between the two deletions, repairMissingService goes on.
func (r *Reconciler) repairService(ctx context.Context, sm *longhorn.ShareManager, service *storage.Service, server *storage.Server, record settings.Record) (time.Duration, error) {
	wrong := fmt.Sprintf("Service %s is headless, and CSI plugin pods are on no network: nothing is published for it", service.Name)
	if wait, err := r.waitForWorkload(ctx, sm, record, wrong+"; it is replaced"); wait > 0 || err != nil {
		return wait, err
	}
	if wait := r.repairs[sm.Name].next.Sub(r.Clock.Now()); wait > 0 {
		return wait, nil
	}
	uid, version := types.UID(service.UID), service.ResourceVersion
	old := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
	err := r.Client.Delete(ctx, old, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsConflict(err) {
		return 0, nil // its change is an event
	}
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("replacing Service %s: %w", service.Name, err)
	}
	return r.restartServer(ctx, sm, podOf(server, r.Profile.Namespace), wrong)
}

// repairMissingService restarts a server pod that has no Service: the storage
// system creates the Service only when it creates the pod.
//
// Source: longhorn-manager v1.7.2 controller/share_manager_controller.go, createShareManagerPod.
func (r *Reconciler) repairMissingService(ctx context.Context, sm *longhorn.ShareManager) (time.Duration, error) {
	record, err := r.Live.Record(ctx)
	if errors.Is(err, cluster.ErrNotRecorded) {
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
	if wait, err := r.waitForWorkload(ctx, sm, record, wrong+"; it is restarted"); wait > 0 || err != nil {
		return wait, err
	}
	return r.restartServer(ctx, sm, podOf(server, r.Profile.Namespace), wrong)
}

// podOf is the server's pod, to delete it.
func podOf(server *storage.Server, namespace string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: server.Pod, UID: types.UID(server.UID)}}
}
