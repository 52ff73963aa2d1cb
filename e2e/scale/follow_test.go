package main

import (
	"os"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestLifeEndsAtTheDeletionRequest(t *testing.T) {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(100))},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
	var l life
	l.note(pod, false, at(101))
	if !l.ready || !l.began.Equal(at(100)) || !l.ended.IsZero() || l.node != "node-1" {
		t.Errorf("a running pod: %+v", l)
	}

	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(at(230))), ptr.To[int64](30)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: evicted})
	l.note(pod, false, at(201))
	if l.ready || !l.ended.Equal(at(200)) || l.cause != evicted {
		t.Errorf("an evicted pod: %+v", l)
	}

	// kwok deletes the pod without its grace period.
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(at(205))), ptr.To[int64](0)
	l.note(pod, true, at(206))
	if !l.ended.Equal(at(200)) {
		t.Errorf("a deleted pod ended at %s", l.ended)
	}

	var unseen life
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	unseen.note(pod, true, at(207))
	if !unseen.ended.Equal(at(207)) || unseen.ready {
		t.Errorf("a pod deleted at once: %+v", unseen)
	}
}

func TestCostSinceAnEarlierCost(t *testing.T) {
	before := cost{processCost: processCost{peak: 50, cpu: 40}, requests: map[string]int{"list pods": 5, "get pods": 2}}
	after := cost{processCost: processCost{peak: 60, cpu: 55}, requests: map[string]int{"list pods": 8, "get pods": 2, "create events": 1}}
	got := after.since(before)
	if got.peak != 60 || got.cpu != 15 || got.total() != 4 || got.requests["list pods"] != 3 {
		t.Errorf("the cost is %+v", got)
	}
	if _, listed := got.requests["get pods"]; listed {
		t.Error("requests without an increase are listed")
	}
	if runtime.GOOS != "linux" {
		return
	}
	own, err := costOf(os.Getpid())
	if err != nil || own.memory < 1 || own.peak < own.memory || own.shared > own.memory {
		t.Errorf("the cost of this process is %+v, %v", own, err)
	}
}
