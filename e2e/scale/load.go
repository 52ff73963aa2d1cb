package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
)

// workers create objects at the same time; more would only wait for each other.
const workers = 16

// forEachVolume runs a function for all volumes, and reports progress.
func (s *scenario) forEachVolume(ctx context.Context, do func(ctx context.Context, n int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers + 1) // one reports progress
	var finished atomic.Int64
	group.Go(func() error {
		return s.report.until(ctx, func() (string, bool, error) {
			n := finished.Load()
			return fmt.Sprintf("%d of %d", n, s.size.volumes), n == int64(s.size.volumes), nil
		})
	})
	for n := range s.size.volumes {
		group.Go(func() error {
			if err := do(ctx, n); err != nil {
				return err
			}
			finished.Add(1)
			return nil
		})
	}
	return group.Wait()
}

func volumeName(n int) string { return fmt.Sprintf("pvc-%05d", n) }
func claimName(n int) string  { return fmt.Sprintf("data-%05d", n) }
func setName(n int) string    { return fmt.Sprintf("app-%05d", n) }

// createVolumes leaves every volume attached, with a server that runs.
func (s *scenario) createVolumes(ctx context.Context) error {
	longhorn := s.Longhorn()
	err := s.forEachVolume(ctx, func(ctx context.Context, n int) error {
		if err := longhorn.CreateVolume(ctx, standin.Volume{Name: volumeName(n), Shared: true, Claim: claimName(n)}); err != nil {
			return err
		}
		return longhorn.Attach(ctx, volumeName(n), s.State.Nodes[n%len(s.State.Nodes)])
	})
	if err != nil {
		return err
	}
	// A pod whose claim isn't bound would have to wait for the scheduler to try again.
	return s.report.until(ctx, func() (string, bool, error) {
		var list corev1.PersistentVolumeClaimList
		if err := s.Client.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return "", false, err
		}
		bound := 0
		for _, claim := range list.Items {
			if claim.Status.Phase == corev1.ClaimBound {
				bound++
			}
		}
		return fmt.Sprintf("%d of %d claims are bound", bound, s.size.volumes), bound == s.size.volumes, nil
	})
}

// workloadLabels select the workloads' pods.
func workloadLabels() map[string]string { return map[string]string{"scale": "workload"} }

// startWorkloads returns when all of their pods are Ready, and Kubernetes has
// attached their volumes where they are.
func (s *scenario) startWorkloads(ctx context.Context) error {
	err := s.forEachVolume(ctx, func(ctx context.Context, n int) error { return s.Client.Create(ctx, statefulSet(n)) })
	if err != nil {
		return fmt.Errorf("creating StatefulSets: %w", err)
	}
	err = s.report.until(ctx, func() (string, bool, error) {
		ready := s.follow.readyWorkloads()
		return fmt.Sprintf("%d of %d pods are Ready", ready, s.size.pods), ready == s.size.pods, nil
	})
	if err != nil {
		return err
	}
	s.report.say("  all pods are Ready")
	return s.report.until(ctx, func() (string, bool, error) {
		var list storagev1.VolumeAttachmentList
		if err := s.Client.List(ctx, &list); err != nil {
			return "", false, err
		}
		attached := 0
		for _, va := range list.Items {
			if va.Status.Attached {
				attached++
			}
		}
		wanted := s.follow.mounts()
		return fmt.Sprintf("%d of %d volumes are attached where their pods are", attached, wanted), attached >= wanted, nil
	})
}

// statefulSet has names that stay, by which it is seen how often each was restarted.
func statefulSet(n int) *appsv1.StatefulSet {
	labels := workloadLabels()
	labels["set"] = setName(n)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: setName(n)},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: setName(n), Replicas: ptr.To[int32](podsPerVolume), PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "app", Image: "app", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
					}},
					Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(n)},
					}}},
				},
			},
		},
	}
}
