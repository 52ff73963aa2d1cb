package controlplane_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sandboxes goes on with the pod and the network that networks has left: a pod
// says since when it has a sandbox, and a new one gets other addresses, late if
// the network is to be late.
func sandboxes(t *testing.T, r *running) {
	pods := r.typed.CoreV1().Pods(namespace)
	pod, err := pods.Get(t.Context(), "json", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodReady} {
		index := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		if index < 0 || pod.Status.Conditions[index].Status != corev1.ConditionTrue || pod.Status.Conditions[index].LastTransitionTime.IsZero() {
			t.Errorf("condition %s is not True since some time: %+v", kind, pod.Status.Conditions)
		}
	}
	before, err := r.status(t, "json")
	if err != nil {
		t.Fatal(err)
	}

	// The delay begins with the sandbox, in whole seconds.
	ready := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReadyToStartContainers })
	began := pod.Status.Conditions[ready].LastTransitionTime.Time
	delay := time.Since(began).Truncate(time.Second) + 2*time.Second
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"[]","simulator.fairlead.io/delay":%q}}}`, netv1.NetworkStatusAnnot, delay)
	if _, err := pods.Patch(t.Context(), "json", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	eventually(t, delay+soon, "attached anew", func() error {
		after, err := r.status(t, "json")
		if err == nil && len(after) != 2 {
			err = errors.New("detached")
		}
		if err != nil {
			return err
		}
		for i, ip := range after[1].IPs {
			if ip == before[1].IPs[i] {
				t.Errorf("it has %s again", ip)
			}
		}
		return nil
	})
	if took := time.Since(began); took < delay {
		t.Errorf("a network that is late by %s was there after %s", delay, took)
	}
}

// endedOnce holds kwok to what a kubelet does by the UID: a second deletion by
// name would end the pod that took the name meanwhile.
func endedOnce(t *testing.T, r *running) {
	pods := r.typed.CoreV1().Pods(namespace)
	if err := pods.Delete(t.Context(), "host", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "gone", func() error {
		_, err := pods.Get(t.Context(), "host", metav1.GetOptions{})
		if err == nil {
			return errors.New("it is still there")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	time.Sleep(500 * time.Millisecond) // nothing announces that no more follows
	log, err := os.ReadFile(filepath.Join(r.state.LogDir, "kwok.log"))
	if err != nil {
		t.Fatal(err)
	}
	var deletions []string
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "default/host") && (strings.Contains(line, "Delete pod") || strings.Contains(line, "failed to delete")) {
			deletions = append(deletions, line)
		}
	}
	if len(deletions) != 1 {
		t.Errorf("kwok deletes it %d times:\n%s", len(deletions), strings.Join(deletions, ""))
	}
}
